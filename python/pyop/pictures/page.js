function show(root, data) {
  const make = (tag, parent, text) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    parent && parent.append(e);
    return e;
  };
  root.textContent = "";
  const all = make("div", root), side = make("div", all), canvas = make("canvas", side), aside = make("aside", all);
  all.className = "pyop-page"; side.className = "draw";
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  make("h1", aside, data.title);
  const find = make("input", aside), bar = make("div", aside), hits = make("ul", aside), told = make("section", aside);
  find.type = "search"; find.placeholder = "search names, shapes, source"; find.setAttribute("aria-label", "search");
  told.setAttribute("aria-live", "polite");
  const legend = make("section", aside);
  make("h2", legend, "colours");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let view = 0, scale = 1, ox = 0, oy = 0, chosen = -1, found = new Set(), waiting = false, heat = false;
  const box = () => data.views[view].boxes, text = (b) => data.texts[b[5]];
  const fill = (b) => {
    const share = text(b)[6];
    if (heat && share >= 0) return `hsl(${dark.matches ? "12 70%" : "12 90%"} ${dark.matches ? 18 + 30 * share : 95 - 40 * share}%)`;
    return data.kinds[b[4]][dark.matches ? 3 : 2];
  };
  const used = new Set(data.views[0].boxes.map((b) => b[4]));
  const keys = data.kinds.map((k, n) => {
    if (!used.has(n)) return;
    const line = make("div", legend), key = make("i", line);
    key.className = "key"; line.append(k[1]);
    return key;
  });
  const ms = (ns) => ns < 1e3 ? `${ns.toFixed(0)} ns` : ns < 1e6 ? `${(ns / 1e3).toPrecision(3)} µs` : `${(ns / 1e6).toPrecision(3)} ms`;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  // Edges by bands of height: of a large picture only the bands in sight are looked at.
  const BAND = 400;
  const bands = data.views.map((v) => {
    const found = new Map();
    const put = (kind, n, a, b) => {
      for (let k = Math.floor(a / BAND); k <= Math.floor(b / BAND); k++) {
        if (!found.has(k)) found.set(k, [[], []]);
        found.get(k)[kind].push(n);
      }
    };
    v.boxes.forEach((b, n) => put(0, n, b[1], b[1] + b[3]));
    v.edges.forEach((e, n) => put(1, n, e[3], e[e.length - 1]));
    return found;
  });
  function seen(kind, top, bottom) {
    const v = data.views[view], many = kind ? v.edges : v.boxes;
    if (bottom - top > v.h) return many.keys();
    const set = new Set();
    for (let k = Math.floor(top / BAND); k <= Math.floor(bottom / BAND); k++)
      for (const n of (bands[view].get(k) || [[], []])[kind]) set.add(n);
    return [...set].sort((a, b) => a - b);
  }
  function draw() {
    waiting = false;
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== w * ratio || canvas.height !== h * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; }
    const c = canvas.getContext("2d"), v = data.views[view], style = getComputedStyle(all);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, h);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * ox, ratio * oy);
    const left = -ox / scale, top = -oy / scale, right = left + w / scale, bottom = top + h / scale;
    const line = style.getPropertyValue("--line"), ink = style.getPropertyValue("--ink");
    const marked = [];
    const rect = (b) => {
      if (b[0] > right || b[0] + b[2] < left || b[1] > bottom || b[1] + b[3] < top) return;
      c.fillStyle = fill(b); c.strokeStyle = line; c.lineWidth = 1;
      c.beginPath();
      scale > .15 ? c.roundRect(b[0], b[1], b[2], b[3], b[4] === 0 || b[4] === data.kinds.length - 1 ? 12 : 4) : c.rect(b[0], b[1], b[2], b[3]);
      c.fill(); c.stroke();
      if (scale < .3) return;
      c.fillStyle = ink;
      b[6].forEach((t, k) => { c.font = `${k ? "" : "bold "}11px ui-monospace,monospace`; c.fillText(t, b[0] + 8, b[1] + 16 + 14 * k, b[2] - 12); });
      const time = text(b)[5];
      if (time >= 0) { c.font = "9px system-ui"; c.textAlign = "right"; c.fillText(ms(time), b[0] + b[2] - 3, b[1] - 3); c.textAlign = "left"; }
    };
    const boxes = [...seen(0, top, bottom)];
    const bodies = boxes.filter((n) => v.boxes[n][7]);
    bodies.forEach((n) => rect(v.boxes[n]));
    c.lineWidth = Math.max(1, .6 / scale); c.strokeStyle = line;
    const path = (e) => {
      c.moveTo(e[2], e[3]);
      for (let k = 4; k < e.length; k += 2) {
        const middle = (e[k - 1] + e[k + 1]) / 2;
        e[k] === e[k - 2] || scale < .08 ? c.lineTo(e[k], e[k + 1]) : c.bezierCurveTo(e[k - 2], middle, e[k], middle, e[k], e[k + 1]);
      }
      const x = e[e.length - 2], y = e[e.length - 1];
      if (scale > .3) { c.moveTo(x - 3, y - 6); c.lineTo(x, y); c.lineTo(x + 3, y - 6); }
    };
    c.beginPath();
    for (const n of seen(1, top, bottom)) {
      const e = v.edges[n];
      if (e[0] === chosen || e[1] === chosen) marked.push(e); else path(e);
    }
    c.stroke();
    boxes.forEach((n) => v.boxes[n][7] || rect(v.boxes[n]));
    if (scale >= .3) { c.fillStyle = ink; c.font = "italic 11px system-ui"; v.titles.forEach((t) => t[1] > top && t[1] < bottom && c.fillText(t[2], t[0], t[1])); }
    c.strokeStyle = "#e07b00"; c.lineWidth = Math.max(2, 1.2 / scale);
    c.beginPath(); marked.forEach(path); c.stroke();
    for (const n of [chosen, ...found]) {
      const b = v.boxes[n];
      if (b) c.strokeRect(b[0] - 2, b[1] - 2, b[2] + 4, b[3] + 4);
    }
    if (!root.dataset.ready) root.dataset.ready = Math.round(performance.now());
  }
  function fit() {
    const v = data.views[view], w = canvas.clientWidth, h = canvas.clientHeight - (strip ? 120 : 0);
    scale = Math.min(1.25, w / (v.w + 20), h / (v.h + 20));
    ox = (w - v.w * scale) / 2; oy = (h - v.h * scale) / 2;
    later();
  }
  function start() { // a picture that would be dust when it is seen as a whole begins where it begins
    fit();
    if (scale < .3 && data.views[view].boxes.length) {
      const b = box()[0];
      scale = .8; ox = canvas.clientWidth / 2 - (b[0] + b[2] / 2) * scale; oy = 20 - b[1] * scale;
    }
  }
  function choose(n, move) {
    chosen = n;
    told.textContent = "";
    const b = box()[n];
    if (b) {
      const t = text(b);
      make("h2", told, t[0]);
      make("div", told, `${data.kinds[b[4]][1]} ${t[1]}`);
      t[2].forEach((line) => make("pre", told, line));
      if (t[5] >= 0) make("div", told, `${ms(t[5])}, ${(100 * t[6]).toFixed(1)} % of all`);
      if (t[3]) make("div", told, t[3]);
      if (t[4]) make("pre", told, t[4]);
      canvas.setAttribute("aria-label", `${data.title}: ${t[0]} ${t[1]}`);
      if (move) { scale = Math.max(scale, .8); ox = canvas.clientWidth / 2 - (b[0] + b[2] / 2) * scale; oy = canvas.clientHeight / 2 - (b[1] + b[3] / 2) * scale; }
    }
    later();
  }
  const zoom = (factor, x, y) => {
    const next = Math.min(4, Math.max(.005, scale * factor));
    ox = x - (x - ox) * next / scale; oy = y - (y - oy) * next / scale; scale = next;
    later();
  };
  const button = (words, does) => { const e = make("button", bar, words); e.type = "button"; e.onclick = does; bar.append(" "); return e; };
  button("fit", fit);
  button("+", () => zoom(1.4, canvas.clientWidth / 2, canvas.clientHeight / 2)).setAttribute("aria-label", "zoom in");
  button("−", () => zoom(1 / 1.4, canvas.clientWidth / 2, canvas.clientHeight / 2)).setAttribute("aria-label", "zoom out");
  if (data.views[1]) {
    const fold = button("fold", () => {
      view = 1 - view; fold.textContent = view ? "unfold" : "fold"; chosen = -1; search(); start();
    });
  }
  if (data.texts.some((t) => t[5] >= 0)) button("times", () => { heat = !heat; later(); });
  function search() {
    const word = find.value.trim().toLowerCase();
    found = new Set(); hits.textContent = "";
    if (!word) return later();
    box().forEach((b, n) => { if (text(b).slice(0, 5).flat().join("\n").toLowerCase().includes(word)) found.add(n); });
    [...found].slice(0, 50).forEach((n) => { make("button", make("li", hits), `${text(box()[n])[0]} ${text(box()[n])[1]}`).onclick = () => choose(n, true); });
    if (found.size > 50 || !found.size) make("li", hits, found.size ? `${found.size - 50} more` : "nothing found");
    if (found.size > 2000) found = new Set();
    later();
  }
  find.oninput = search;
  find.onkeydown = (e) => { if (e.key === "Enter" && hits.firstChild && hits.firstChild.firstChild.onclick) hits.firstChild.firstChild.onclick(); };
  let held = null, moved = 0;
  canvas.onpointerdown = (e) => { held = [e.clientX, e.clientY]; moved = 0; canvas.setPointerCapture(e.pointerId); };
  canvas.onpointermove = (e) => {
    if (!held) return;
    ox += e.clientX - held[0]; oy += e.clientY - held[1]; moved += Math.abs(e.clientX - held[0]) + Math.abs(e.clientY - held[1]);
    held = [e.clientX, e.clientY];
    later();
  };
  canvas.onpointerup = (e) => {
    held = null;
    if (moved > 4) return;
    const at = canvas.getBoundingClientRect(), x = (e.clientX - at.left - ox) / scale, y = (e.clientY - at.top - oy) / scale;
    let hit = -1;
    box().forEach((b, n) => { if (x >= b[0] && x <= b[0] + b[2] && y >= b[1] && y <= b[1] + b[3]) hit = n; });
    choose(hit);
  };
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); const at = canvas.getBoundingClientRect(); zoom(Math.exp(-e.deltaY / 400), e.clientX - at.left, e.clientY - at.top); }, { passive: false });
  canvas.onkeydown = (e) => {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
    if (step) { ox += step[0]; oy += step[1]; later(); } else if (e.key === "+" || e.key === "-") zoom(e.key === "+" ? 1.4 : 1 / 1.4, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else if (e.key === "0") fit(); else return;
    e.preventDefault();
  };
  let strip = null;
  if (data.calls.length) { // the timeline: a bar a call, by thread and depth; it chooses the box of its name
    strip = make("canvas", side);
    strip.className = "time"; strip.style.top = "auto";
    strip.setAttribute("role", "img"); strip.setAttribute("aria-label", "timeline of calls");
    const depth = Math.max(...data.calls.map((c) => c[1])) + 1, begin = Math.min(...data.calls.map((c) => c[2]));
    const end = Math.max(...data.calls.map((c) => c[2] + c[3])), rows = (Math.max(...data.calls.map((c) => c[0])) + 1) * depth;
    const bar = (c, w) => [(c[2] - begin) / (end - begin || 1) * w, (c[0] * depth + c[1]) * 110 / rows + 5, Math.max(1, c[3] / (end - begin || 1) * w), 110 / rows - 1];
    const paint = () => {
      const w = strip.width = strip.clientWidth, g = strip.getContext("2d");
      strip.height = 120;
      g.font = "11px system-ui";
      data.calls.forEach((c) => {
        const [x, y, dx, dy] = bar(c, w);
        g.fillStyle = `hsl(${[...c[4]].reduce((a, t) => (a * 31 + t.charCodeAt(0)) % 360, 7)} 45% ${dark.matches ? 35 : 75}%)`;
        g.fillRect(x, y, dx, dy);
        if (dx > 40 && dy > 11) { g.fillStyle = dark.matches ? "#eee" : "#111"; g.fillText(c[4].slice(0, dx / 6), x + 3, y + dy / 2 + 4); }
      });
    };
    strip.onclick = (e) => {
      const at = strip.getBoundingClientRect(), px = e.clientX - at.left, py = e.clientY - at.top;
      const hit = data.calls.filter((c) => { const [x, y, dx, dy] = bar(c, at.width); return px >= x && px <= x + dx && py >= y && py <= y + dy; }).pop();
      if (!hit) return;
      const n = box().findIndex((b) => text(b)[3] === hit[5] && text(b)[0].split(" ")[0] === hit[4].split(" ")[0]);
      choose(n, true);
      if (n < 0) { make("h2", told, hit[4]); make("div", told, `${ms(hit[3])} ${hit[5]}`); }
    };
    new ResizeObserver(paint).observe(strip);
    dark.addEventListener("change", paint);
  }
  const tint = () => { keys.forEach((key, n) => { if (key) key.style.background = data.kinds[n][dark.matches ? 3 : 2]; }); later(); };
  dark.addEventListener("change", tint);
  canvas.setAttribute("aria-label", `${data.title}, ${data.views[0].boxes.length} boxes`);
  new ResizeObserver(later).observe(canvas);
  tint(); start(); draw();
}
export default { render: ({ model, el }) => { el.style.height = model.get("height"); const go = () => show(el, model.get("data")); model.on("change:data", go); requestAnimationFrame(go); } };

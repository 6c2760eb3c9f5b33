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
  let view = 0, scale = 1, ox = 0, oy = 0, chosen = -1, found = new Set(), waiting = false, heat = false;
  // A text is a box, whether it is in sight or inside of a folded one; `flat` is what is drawn: boxes by the numbers of
  // their texts are in `index`, edges are points.
  let flat, index, bands;
  const turned = new Set(), parents = new Map(), text = (b) => data.texts[b[5]];
  const adopt = (picture, parent) => picture.boxes.forEach((b) => {
    parents.set(b[4], parent);
    (b[5] || []).forEach((part) => adopt(part[2], b[4]));
  });
  adopt(data.views[0], -1);
  const holding = new Set([...parents.values()]);
  const foldable = (t) => data.texts[t][8].length > 0 || holding.has(t);
  const open = (t) => !view !== turned.has(t);
  const fill = (b) => {
    const share = text(b)[6];
    return heat && share >= 0 ? `hsl(12 90% 50% / ${.07 + .73 * share})` : data.kinds[b[4]][2];
  };
  const used = new Set();
  const use = (picture) => picture.boxes.forEach((b) => { used.add(b[3]); (b[5] || []).forEach((part) => use(part[2])); });
  use(data.views[0]);
  data.kinds.forEach((k, n) => {
    if (!used.has(n)) return;
    const line = make("div", legend), key = make("i", line);
    key.className = "key"; key.style.background = k[2]; line.append(k[1]);
  });
  const ms = (ns) => ns < 1e3 ? `${ns.toFixed(0)} ns` : ns < 1e6 ? `${(ns / 1e3).toPrecision(3)} µs` : `${(ns / 1e6).toPrecision(3)} ms`;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  // Sizes of a picture as it is folded now. Layers keep their order: a box that is taller than in the layout moves the
  // layers below, and one that is wider its neighbours, each layer by itself: so however many are unfolded, a picture is
  // about as wide as its widest layer. Boxes stay apart, and edges bend between layers only.
  function measure(picture) {
    const tall = picture.rows.map(() => 0), grown = new Set();
    const boxes = picture.boxes.map((b) => {
      const t = data.texts[b[4]], opened = open(b[4]), inner = [];
      let w = t[opened ? 11 : 9], h = t[opened ? 12 : 10];
      if (opened && b[5]) {
        let x = 12, most = 0;
        for (const [title, width, part] of b[5]) {
          const m = measure(part);
          inner.push([title, x, h + 18, m]);
          x += Math.max(m.w, width) + 12; most = Math.max(most, m.h);
        }
        w = Math.max(w, x); h += 18 + most + 12;
      }
      tall[b[2]] = Math.max(tall[b[2]], h);
      if (w > b[1] + .2) grown.add(b[2]);
      return [w, h, inner];
    });
    let more = 0, left = 0, right = 0;
    const rows = picture.rows.map(([top, bottom], r) => {
      const from = top + more;
      more += tall[r] - (bottom - top);
      return [from, from + tall[r]];
    });
    const moved = [], { layers, edge } = spots(picture);
    for (const r of grown) {
      moved[r] = new Map();
      for (const [x, to, w] of spread(layers[r], boxes)) {
        moved[r].set(x, to);
        left = Math.max(left, 12 + w / 2 - to); right = Math.max(right, 12 + w / 2 + to - edge);
      }
    }
    // Where x of a layer is now; what passes several is a lane, right of all boxes.
    const move = (x, r, last = r) => left + (last > r ? x + right : moved[r]?.get(x) ?? x);
    return { picture, boxes, rows, move, w: picture.w + left + right, h: picture.h + more };
  }
  // By layer, from left to right: boxes and the points at which edges pass, each the x of its middle and its number or -1.
  const spots = (picture) => picture.spots ??= (() => {
    const rows = picture.rows.map(() => new Map());
    let edge = picture.w;
    for (const e of picture.edges)
      for (let k = 2; k < e.length; k += 3) if (e[k + 1] < e[k + 2]) edge = Math.min(edge, e[k]); else rows[e[k + 1]].set(e[k], -1);
    picture.boxes.forEach((b, n) => rows[b[2]].set(b[0], n));
    return { edge, layers: rows.map((row) => [...row].sort((a, b) => a[0] - b[0])) };
  })();
  // The places nearest to those of the layout, by squares, in order and apart, as in layout.py: pools of adjacent boxes.
  function spread(row, boxes) {
    const wide = row.map(([, n]) => n < 0 ? 6 : boxes[n][0]), apart = [], pools = [], out = [];
    row.forEach(([x], k) => {
      apart.push(k ? apart[k - 1] + (wide[k - 1] + wide[k]) / 2 + 18 : 0);
      let sum = x - apart[k], count = 1;
      while (pools.length && pools.at(-1)[0] * count > sum * pools.at(-1)[1]) {
        const [more, n] = pools.pop();
        sum += more; count += n;
      }
      pools.push([sum, count]);
    });
    for (const [sum, count] of pools)
      for (let n = 0; n < count; n++) out.push([row[out.length][0], sum / count + apart[out.length], wide[out.length]]);
    return out;
  }
  const BAND = 400;
  function build() {
    const all = measure(data.views[view]);
    flat = { w: all.w, h: all.h, boxes: [], edges: [], titles: [] };
    index = new Map();
    const add = (m, x, y) => {
      const first = flat.boxes.length;
      m.picture.boxes.forEach((b, n) => {
        const [w, h, inner] = m.boxes[n], t = data.texts[b[4]];
        index.set(b[4], flat.boxes.length);
        flat.boxes.push([x + m.move(b[0], b[2]) - w / 2, y + m.rows[b[2]][0], w, h, b[3], b[4], open(b[4]) ? [...t[7], ...t[8]] : t[7], inner.length, foldable(b[4])]);
      });
      for (const e of m.picture.edges) {
        const a = m.picture.boxes[e[0]], b = m.picture.boxes[e[1]], from = m.move(a[0], a[2]) + x, to = m.move(b[0], b[2]) + x;
        const end = m.rows[a[2]][0] + m.boxes[e[0]][1] + y, bottom = m.rows[a[2]][1] + y;
        const points = [from, end];
        if (end < bottom) points.push(from, bottom);
        for (let k = 2; k < e.length; k += 3) {
          const at = m.move(e[k], e[k + 1], e[k + 2]) + x;
          points.push(at, m.rows[e[k + 1]][0] + y, at, m.rows[e[k + 2]][1] + y);
        }
        flat.edges.push([first + e[0], first + e[1], ...points, to, m.rows[b[2]][0] + y]);
      }
      m.boxes.forEach(([, , inner], n) => inner.forEach(([title, dx, dy, part]) => {
        const b = flat.boxes[first + n];
        flat.titles.push([b[0] + dx, b[1] + dy - 5, title]);
        add(part, b[0] + dx, b[1] + dy);
      }));
    };
    add(all, 0, 0);
    // By bands of height: of a large picture only the bands in sight are looked at.
    bands = new Map();
    const put = (kind, n, a, b) => {
      for (let k = Math.floor(a / BAND); k <= Math.floor(b / BAND); k++) {
        if (!bands.has(k)) bands.set(k, [[], []]);
        bands.get(k)[kind].push(n);
      }
    };
    flat.boxes.forEach((b, n) => put(0, n, b[1], b[1] + b[3]));
    flat.edges.forEach((e, n) => put(1, n, e[3], e[e.length - 1]));
  }
  function seen(kind, top, bottom) {
    const many = kind ? flat.edges : flat.boxes;
    if (bottom - top > flat.h) return [...many.keys()];
    const set = new Set();
    for (let k = Math.floor(top / BAND); k <= Math.floor(bottom / BAND); k++)
      for (const n of (bands.get(k) || [[], []])[kind]) set.add(n);
    return [...set].sort((a, b) => a - b);
  }
  const shown = (t) => { // the number of its box, or of the folded one that it is in
    while (t >= 0 && !index.has(t)) t = parents.get(t);
    return t >= 0 ? index.get(t) : -1;
  };
  function turn(t) { // fold or unfold it where it stands
    const before = flat.boxes[shown(t)];
    turned.has(t) ? turned.delete(t) : turned.add(t);
    build();
    const after = flat.boxes[shown(t)];
    ox += (before[0] - after[0]) * scale; oy += (before[1] - after[1]) * scale;
    choose(t);
  }
  function draw() {
    waiting = false;
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight, picked = shown(chosen);
    if (canvas.width !== w * ratio || canvas.height !== h * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; }
    const c = canvas.getContext("2d"), v = flat, style = getComputedStyle(all);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, h);
    c.setTransform(ratio * scale, 0, 0, ratio * scale, ratio * ox, ratio * oy);
    const left = -ox / scale, top = -oy / scale, right = left + w / scale, bottom = top + h / scale;
    const line = "#889", ink = style.color; // the theme's: fills let the ground through
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
      if (b[8]) {
        const x = b[0] + 1.5, y = b[1] + 12;
        c.beginPath();
        open(b[5]) ? (c.moveTo(x, y - 2), c.lineTo(x + 5, y - 2), c.lineTo(x + 2.5, y + 2)) : (c.moveTo(x, y - 3), c.lineTo(x + 4, y), c.lineTo(x, y + 3));
        c.fill();
      }
      if (time >= 0) { c.font = "9px system-ui"; c.textAlign = "right"; c.fillText(ms(time), b[0] + b[2] - 3, b[1] - 3); c.textAlign = "left"; }
    };
    const boxes = seen(0, top, bottom);
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
      if (e[0] === picked || e[1] === picked) marked.push(e); else path(e);
    }
    c.stroke();
    boxes.forEach((n) => v.boxes[n][7] || rect(v.boxes[n]));
    if (scale >= .3) { c.fillStyle = ink; c.font = "italic 11px system-ui"; v.titles.forEach((t) => t[1] > top && t[1] < bottom && c.fillText(t[2], t[0], t[1])); }
    c.strokeStyle = "#e07b00"; c.lineWidth = Math.max(2, 1.2 / scale);
    c.beginPath(); marked.forEach(path); c.stroke();
    for (const t of [chosen, ...found]) {
      const b = v.boxes[shown(t)];
      if (b) c.strokeRect(b[0] - 2, b[1] - 2, b[2] + 4, b[3] + 4);
    }
    if (!root.dataset.ready) root.dataset.ready = Math.round(performance.now());
  }
  function fit() {
    const v = flat, w = canvas.clientWidth, h = canvas.clientHeight;
    scale = Math.min(1.25, w / (v.w + 20), h / (v.h + 20));
    ox = (w - v.w * scale) / 2; oy = (h - v.h * scale) / 2;
    later();
  }
  function start() { // a picture that would be dust when it is seen as a whole begins where it begins
    fit();
    if (scale < .6 && flat.boxes.length) {
      const b = flat.boxes.reduce((a, b) => b[1] < a[1] ? b : a);
      scale = .8; ox = canvas.clientWidth / 2 - (b[0] + b[2] / 2) * scale; oy = 20 - b[1] * scale;
    }
  }
  function choose(t, move) {
    chosen = t;
    told.textContent = "";
    if (t < 0) return later();
    for (let p = move ? parents.get(t) : -1; p >= 0; p = parents.get(p)) if (!open(p)) turned.has(p) ? turned.delete(p) : turned.add(p);
    if (!index.has(t)) build();
    const n = shown(t), b = flat.boxes[n], x = data.texts[t];
    make("h2", told, x[0]);
    make("div", told, `${data.kinds[b[4]][1]} ${x[1]}`);
    x[2].forEach((line) => make("pre", told, line));
    if (x[5] >= 0) make("div", told, `${ms(x[5])}, ${(100 * x[6]).toFixed(1)} % of all`);
    if (x[3]) make("div", told, x[3]);
    if (x[4]) make("pre", told, x[4]);
    if (foldable(t)) {
      const e = make("button", told, open(t) ? "fold this" : "unfold this");
      e.type = "button"; e.onclick = () => turn(t);
    }
    [["reads", 1, 0], ["read by", 0, 1]].forEach(([words, mine, other]) => {
      const near = flat.edges.filter((e) => e[mine] === n).map((e) => flat.boxes[e[other]][5]);
      if (near.length) list(make("ul", told), words, near);
    });
    canvas.setAttribute("aria-label", `${data.title}: ${x[0]} ${x[1]}${foldable(t) ? open(t) ? ", unfolded" : ", folded" : ""}`);
    if (move) { scale = Math.max(scale, .8); ox = canvas.clientWidth / 2 - (b[0] + b[2] / 2) * scale; oy = canvas.clientHeight / 2 - (b[1] + Math.min(b[3] / 2, 200)) * scale; }
    later();
  }
  function list(ul, words, boxes) { // buttons that choose them
    if (words) make("li", ul, words);
    boxes.slice(0, 50).forEach((t) => { make("button", make("li", ul), `${data.texts[t][0].slice(0, 200)} ${data.texts[t][1]}`).onclick = () => choose(t, true); });
    if (boxes.length > 50) make("li", ul, `${boxes.length - 50} more`);
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
    const fold = button("fold all", () => {
      view = 1 - view; fold.textContent = view ? "unfold all" : "fold all"; turned.clear(); build(); choose(-1); start();
    });
  }
  if (data.texts.some((t) => t[5] >= 0)) button("times", () => { heat = !heat; later(); });
  function search() {
    const word = find.value.trim().toLowerCase();
    found = new Set(); hits.textContent = "";
    if (!word) return later();
    data.texts.forEach((t, n) => { if (t.slice(0, 5).flat().join("\n").toLowerCase().includes(word)) found.add(n); });
    const named = (t) => data.texts[t][0].toLowerCase().includes(word);
    list(hits, "", [...found].sort((a, b) => named(b) - named(a))); // what is called so before what only says it
    if (!found.size) make("li", hits, "nothing found");
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
  canvas.onpointercancel = () => { held = null; };
  canvas.onpointerup = (e) => {
    held = null;
    if (moved > 4) return;
    const at = canvas.getBoundingClientRect(), x = (e.clientX - at.left - ox) / scale, y = (e.clientY - at.top - oy) / scale;
    const hit = seen(0, y, y).filter((n) => { const b = flat.boxes[n]; return x >= b[0] && x <= b[0] + b[2] && y >= b[1] && y <= b[1] + b[3]; }).pop();
    const t = hit === undefined ? -1 : flat.boxes[hit][5];
    if (t >= 0 && foldable(t) && y < flat.boxes[hit][1] + 22) turn(t); else choose(t);
  };
  canvas.addEventListener("wheel", (e) => { e.preventDefault(); const at = canvas.getBoundingClientRect(); zoom(Math.exp(-e.deltaY / 400), e.clientX - at.left, e.clientY - at.top); }, { passive: false });
  canvas.onkeydown = (e) => {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
    if (step) { ox += step[0]; oy += step[1]; later(); } else if (e.key === "+" || e.key === "-") zoom(e.key === "+" ? 1.4 : 1 / 1.4, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else if (e.key === "0") fit();
    else if (e.key === "n" || e.key === "p") { // the next box and the one before, as they were made
      const many = flat.boxes.length, n = shown(chosen);
      if (many) choose(flat.boxes[n < 0 ? 0 : (n + (e.key === "n" ? 1 : many - 1)) % many][5], true);
    } else if ((e.key === "Enter" || e.key === " ") && chosen >= 0 && foldable(chosen)) turn(chosen);
    else return;
    e.preventDefault();
  };
  let strip = null;
  if (data.calls.length) { // the timeline: a bar a call, by thread and depth; it chooses the box of its name
    strip = make("canvas", side);
    strip.className = "time"; strip.style.top = "auto"; canvas.style.height = "calc(100% - 120px)";
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
        g.fillStyle = `hsl(${[...c[4]].reduce((a, t) => (a * 31 + t.charCodeAt(0)) % 360, 7)} 60% 50% / .45)`;
        g.fillRect(x, y, dx, dy);
        if (dx > 40 && dy > 11) { g.fillStyle = getComputedStyle(all).color; g.fillText(c[4].slice(0, dx / 6), x + 3, y + dy / 2 + 4); }
      });
    };
    strip.onclick = (e) => {
      const at = strip.getBoundingClientRect(), px = e.clientX - at.left, py = e.clientY - at.top;
      const hit = data.calls.filter((c) => { const [x, y, dx, dy] = bar(c, at.width); return px >= x && px <= x + dx && py >= y && py <= y + dy; }).pop();
      if (!hit) return;
      const n = data.texts.findIndex((t) => t[3] === hit[5] && t[0].split(" ")[0] === hit[4].split(" ")[0]);
      choose(n, true);
      if (n < 0) { make("h2", told, hit[4]); make("div", told, `${ms(hit[3])} ${hit[5]}`); }
    };
    new ResizeObserver(paint).observe(strip);
    all.addEventListener("transitionend", paint);
  }
  all.addEventListener("transitionend", later); // of the colour: the theme is another one
  canvas.setAttribute("aria-label", `${data.title}, ${data.texts.length} boxes`);
  new ResizeObserver(later).observe(canvas);
  root.drawn = () => ({ ...flat, scale, ox, oy, chosen: shown(chosen) }); // for who tests or embeds the page
  build(); start(); draw();
}
export default { render: ({ model, el }) => { el.style.height = model.get("height"); const go = () => show(el, model.get("data")); model.on("change:data", go); requestAnimationFrame(go); } };

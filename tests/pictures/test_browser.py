"""The page in a browser, where there is one: it draws, scripts in names do not run, boxes fold, are found and moved."""

from __future__ import annotations

import html
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest

import pyop
from pyop.pictures.model import KINDS, Box, Edge, Picture
from pyop.pictures.page import data_of, page, part
from pyop.pictures.svg import svg
from tests.pictures.test_layout import curve

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1200,800"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def dom(path, *more: str) -> str:
    command = [CHROMIUM, *SWITCHES, *more, f"--user-data-dir={path.parent / 'profile'}", "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_plan_with_a_profile_is_drawn(tmp_path):
    plan = pyop.trace(lambda x: np.sort(np.sin(x) * 2.0), "float64[n]").compile()
    with pyop.profile() as p:
        plan(np.ones(5))
    plan.to_html(tmp_path / "plan.html", profile=p)
    text = dom(tmp_path / "plan.html")
    assert 'data-ready="' in text
    assert "timeline of calls" in text
    assert ">times<" in text


def test_scripts_in_names_do_not_run(tmp_path):
    name = '</script><script>document.title="broken"</script><img src=x onerror="document.title=\'broken\'">'
    boxes = [Box(name, "input", name), Box(name, "group", name, [name], [name, name], name, name)]
    (tmp_path / "p.html").write_text(page(Picture(name, boxes, [Edge(0, 1, name)])), "utf-8")
    text = dom(tmp_path / "p.html")
    assert 'data-ready="' in text
    assert "<title>broken" not in text
    assert "<img" not in text


# What a reader does, done by a script in the page, since --dump-dom shows the end only: `act` has the root's parts.
ACT = """
const act = (root) => {
  const canvas = root.querySelector("canvas"), find = root.querySelector("input");
  canvas.setPointerCapture = () => {};
  const at = (x, y) => {
    const d = root.drawn(), r = canvas.getBoundingClientRect();
    return { clientX: r.left + x * d.scale + d.ox, clientY: r.top + y * d.scale + d.oy, pointerId: 1, bubbles: true };
  };
  const send = (kind, where) => canvas.dispatchEvent(new PointerEvent(kind, where));
  return {
    canvas, find, drawn: root.drawn, told: () => root.querySelector("section").innerText,
    named: (name) => root.drawn().boxes.find((b) => b[6][0] === name),
    click: (x, y) => { send("pointerdown", at(x, y)); send("pointerup", at(x, y)); },
    head: (b) => { const p = at(b[0] + 3, b[1] + 5); send("pointerdown", p); send("pointerup", p); },
    drag: (dx, dy) => {
      const p = at(0, 0);
      send("pointerdown", p); send("pointermove", { ...p, clientX: p.clientX + dx, clientY: p.clientY + dy });
      send("pointerup", { ...p, clientX: p.clientX + dx, clientY: p.clientY + dy });
    },
    wheel: (deltaY, x, y) => canvas.dispatchEvent(new WheelEvent("wheel", { ...at(x, y), deltaY })),
    key: (key, on) => (on || canvas).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })),
    type: (word) => { find.value = word; find.dispatchEvent(new Event("input")); },
    press: (words) => [...root.querySelectorAll("button")].find((b) => b.textContent === words).click(),
    buttons: () => [...root.querySelectorAll("button")].map((b) => b.textContent),
  };
};
const failures = [];
onerror = (message) => { failures.push(message); };
"""


def done_in(path, scenarios):
    """What scripts return that run behind those of the page, each on a picture of its own, by names; an error of any of
    them, or of the page, fails the test. One browser for all: it starts slowly.
    """
    parts = [
        f"""(() => {{
          const data = {json.dumps(data)}, root = document.createElement("div");
          root.style.height = "600px"; document.body.append(root); show(root, data);
          const a = act(root);
          try {{ results.push((() => {{{script}}})()); }} catch (error) {{ failures.push({name!r} + error.stack); }}
          root.remove();
        }})();"""
        for name, (data, script) in scenarios.items()
    ]
    text = page(Picture("p")).removesuffix("</html>") + (
        f"<script>{ACT}</script><script>const results = []; {' '.join(parts)}"
        "const out = document.createElement('pre'); out.id = 'result';"
        "out.textContent = JSON.stringify([results, failures]); document.body.append(out)</script></html>"
    )
    path.write_text(text, "utf-8")
    found = re.search(r'<pre id="result">(.*?)</pre>', dom(path), re.DOTALL)
    assert found, "the script has thrown"
    results, failures = json.loads(html.unescape(found[1]))
    assert failures == []
    return dict(zip(scenarios, results, strict=True))


def nested() -> Picture:
    deep = Picture("deep", [Box("start", "input"), Box("needle", "native", "float64[n]")], [Edge(0, 1)])
    body = Picture("body", [Box("i", "input"), Box("again", "loop", inside=[("each iteration", deep)])], [Edge(0, 1)])
    boxes = [
        Box("x", "input"),
        Box("outer", "loop", "float64[n]", inside=[("each iteration", body)]),
        Box("sin cos", "group", members=["sin(x)", "cos(sin)"]),
        Box("end", "output"),
    ]
    return Picture("p", boxes, [Edge(0, 1), Edge(0, 2), Edge(1, 3), Edge(2, 3)])


FOLD = """
    const steps = [];
    const note = () => {
      const d = a.drawn(), b = a.named("outer");
      steps.push({ names: d.boxes.map((b) => b[6].join("|")), head: [b[0] * d.scale + d.ox, b[1] * d.scale + d.oy],
                   told: a.told(), h: d.h, labels: d.titles.map((t) => t[2]) });
    };
    note();
    a.head(a.named("again")); note();
    a.head(a.named("outer")); note();
    a.head(a.named("outer")); note();
    a.head(a.named("sin cos")); note();
    const b = a.named("outer");
    a.click(b[0] + 20, b[1] + 30); note();
    a.press("fold this"); note();
    a.press("fold all"); note();
    a.head(a.named("outer")); note();
    a.press("unfold all"); note();
    return steps;
"""
FIND = """
    const seen = [];
    a.press("fold all");
    seen.push(a.drawn().boxes.length);
    a.type("nEEdle");
    seen.push(a.buttons().includes("needle float64[n]"), a.drawn().boxes.length);
    a.key("Enter", a.find);
    const d = a.drawn(), b = d.boxes[d.chosen], w = a.canvas.clientWidth, h = a.canvas.clientHeight;
    seen.push(b[6][0], b[0] * d.scale + d.ox > 0, (b[0] + b[2]) * d.scale + d.ox < w, b[1] * d.scale + d.oy > 0,
              (b[1] + b[3]) * d.scale + d.oy < h, d.boxes.length);
    a.type("cos(sin)"); a.key("Enter", a.find);  // a member of a folded group
    seen.push(a.drawn().boxes[a.drawn().chosen][6][0]);
    a.type("is not there");
    seen.push(root.querySelector("ul").innerText);
    return seen;
"""
MOVE = """
    const seen = [];
    const point = (x, y) => { const d = a.drawn(); return [x * d.scale + d.ox, y * d.scale + d.oy]; };
    const [x, y] = [40, 60], before = point(x, y), scale = a.drawn().scale;
    a.wheel(-400, x, y);
    const after = point(x, y);
    seen.push(Math.abs(a.drawn().scale / scale - Math.E) < .01 || a.drawn().scale === 4);
    seen.push(Math.hypot(after[0] - before[0], after[1] - before[1]) < 3);
    const from = point(0, 0);
    a.drag(30, -20);
    const to = point(0, 0);
    seen.push(Math.round(to[0] - from[0]), Math.round(to[1] - from[1]), a.drawn().chosen);
    a.key("0");
    seen.push(Math.abs(a.drawn().scale - scale) < 1e-9);
    a.key("n"); a.key("n");
    seen.push(a.drawn().boxes[a.drawn().chosen][6][0]);
    a.key("Enter");
    seen.push(a.drawn().boxes.length, a.canvas.getAttribute("aria-label"));
    a.key("p"); a.key("p");
    seen.push(a.drawn().boxes[a.drawn().chosen][6][0]);
    return seen;
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    scripts = {"fold": FOLD, "find": FIND, "move": MOVE}
    scenarios = {name: (data_of(nested()), script) for name, script in scripts.items()}
    return done_in(tmp_path_factory.mktemp("page") / "p.html", scenarios | folded_by_chance(range(12)))


def test_one_box_is_folded_by_its_head_and_stays_where_it_was(done):
    steps = done["fold"]
    names = [step["names"] for step in steps]
    everything = ["x", "outer|float64[n]", "sin cos|sin(x)|cos(sin)", "end", "i", "again", "start", "needle|float64[n]"]
    assert names[0] == everything
    assert names[1] == everything[:6]
    assert names[2] == everything[:4]
    assert names[3] == everything[:6]  # what was folded inside of it still is
    assert names[4] == ["x", "outer|float64[n]", "sin cos", "end", "i", "again"]
    assert names[5] == names[4]
    assert steps[5]["told"].startswith("outer")
    assert names[6] == ["x", "outer|float64[n]", "sin cos", "end"]
    assert names[7] == names[6]
    assert names[8] == ["x", "outer|float64[n]", "sin cos", "end", "i", "again"]
    assert names[9] == everything
    for before, after in itertools.pairwise(steps[1:4]):
        assert after["head"] == pytest.approx(before["head"], abs=0.5)
    assert steps[2]["h"] < steps[1]["h"] < steps[0]["h"]
    assert steps[0]["labels"] == ["each iteration", "each iteration"]


def test_what_is_folded_away_is_found_and_unfolded(done):
    found = done["find"]
    assert found == [4, True, 4, "needle", True, True, True, True, 8, "sin cos", "nothing found"]


def test_zoom_pan_and_keys(done):
    found = done["move"]
    assert found == [True, True, 30, -20, -1, True, "outer", 4, "p: outer float64[n], folded", "end"]


def wide_when_unfolded(rows: int) -> Picture:
    """Loops one below the other, side by side, each of which is ten times as wide when it is unfolded."""
    body = Picture("body", [Box("b" * 30) for _ in range(4)])
    boxes = [Box("x", "input")] + [Box(f"loop {k}", "loop", inside=[("body", body)]) for k in range(2 * rows)]
    return Picture("p", boxes, [Edge(max(0, k - 2), k) for k in range(1, 2 * rows + 1)])


UNFOLD = """
    const whole = a.drawn().w;
    a.press("fold all");
    const folded = a.drawn().w, widths = [];
    for (let k = 0; k < ROWS * 2; k++) { a.head(a.named(`loop ${k}`)); widths.push(a.drawn().w); }
    const { boxes, edges, w, h } = a.drawn();
    return { whole, folded, widths, drawn: { boxes: boxes.map((b) => b.slice(0, 4)), edges, w, h } };
"""


def test_however_many_boxes_are_unfolded_the_picture_stays_as_wide_as_its_widest_layer(tmp_path):
    scenarios = {
        str(rows): (data_of(wide_when_unfolded(rows)), UNFOLD.replace("ROWS", str(rows))) for rows in (1, 4, 30)
    }
    for found in done_in(tmp_path / "p.html", scenarios).values():
        assert found["folded"] < found["whole"] / 3
        assert max(found["widths"]) < 1.1 * found["whole"]
        check_drawn(found["drawn"])


def random_picture(chance: random.Random, depth: int = 0) -> Picture:
    n = chance.randint(1, 14)
    boxes = [
        Box("b" * chance.randint(1, 40), members=["m" * chance.randint(1, 60)] * chance.choice([0, 0, 3]))
        for _ in range(n)
    ]
    for _ in range(chance.randint(0, 3) if depth < 2 else 0):
        chance.choice(boxes).inside.append(("body", random_picture(chance, depth + 1)))
    pairs = {tuple(sorted(chance.sample(range(n), 2))) for _ in range(chance.randint(0, 2 * n))} if n > 1 else ()
    return Picture("p", boxes, [Edge(a, b) for a, b in pairs])


def check_drawn(drawn) -> None:
    """Boxes are apart or inside of one another, and an edge runs through none but those that it is in."""
    boxes, eps = drawn["boxes"], 0.3  # coordinates are rounded to tenths
    holds = [
        [x - eps <= u and y - eps <= v and u + p <= x + w + eps and v + q <= y + h + eps for u, v, p, q, *_ in boxes]
        for x, y, w, h, *_ in boxes
    ]
    for k, (x, y, w, h, *_) in enumerate(boxes):
        assert -eps <= x
        assert x + w <= drawn["w"] + eps + 0.5
        assert y + h <= drawn["h"] + eps + 0.5
        for m, (u, v, p, q, *_) in enumerate(boxes[:k]):
            apart = x + w <= u + eps or u + p <= x + eps or y + h <= v + eps or v + q <= y + eps
            assert apart or (holds[k][m] or holds[m][k])
    for a, b, *flat in drawn["edges"]:
        points = list(zip(flat[::2], flat[1::2], strict=True))
        x, y, w, h, *_ = boxes[a]
        assert points[0] == pytest.approx((x + w / 2, y + h), abs=eps)
        x, y, w, h, *_ = boxes[b]
        assert points[-1] == pytest.approx((x + w / 2, y), abs=eps)
        drawn_points = [point for pair in itertools.pairwise(points) for point in curve(*pair)]
        for k, (x, y, w, h, *_) in enumerate(boxes):
            if k not in (a, b) and holds[k][a] and holds[k][b]:
                continue
            assert not any(x + eps < u < x + w - eps and y + eps < v < y + h - eps for u, v in drawn_points)


TURNS = """
    return turns.flatMap((turn, k) => {
      if (k === 2 && data.views[1]) a.press("fold all");
      const boxes = a.drawn().boxes.filter((b) => b[8]);
      if (!boxes.length) return [];
      a.head(boxes[Math.floor(turn * boxes.length)]);
      const { boxes: now, edges, w, h } = a.drawn();
      return [{ boxes: now.map((b) => b.slice(0, 4)), edges, w, h }];
    });
"""


def folded_by_chance(seeds):
    found = {}
    for seed in seeds:
        chance = random.Random(seed)
        data = data_of(random_picture(chance))
        found[f"seed {seed}"] = data, f"const turns = {[chance.random() for _ in range(4)]};{TURNS}"
    return found


def test_however_boxes_are_folded_edges_run_through_none(done):
    drawn = [each for name, many in done.items() if name.startswith("seed") for each in many]
    assert len(drawn) > 30
    for each in drawn:
        check_drawn(each)


@pytest.mark.campaign
def test_however_boxes_are_folded_edges_run_through_none_in_many_pictures(tmp_path):
    for many in done_in(tmp_path / "p.html", folded_by_chance(range(1000, 1600))).values():
        for each in many:
            check_drawn(each)


# Least contrast of the text in each picture of the page, with all that lies behind it.
CONTRASTS = """
    const numbers = (colour) => [...colour.match(/[.0-9]+/g).map(Number), 1].slice(0, 4);
    const over = (top, bottom, much) => top.slice(0, 3).map((v, k) => much * v + (1 - much) * bottom[k]);
    const light = (colour) => {
      const [r, g, b] = colour.map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
      return .2126 * r + .7152 * g + .0722 * b;
    };
    const of = (theme) => [...theme.querySelectorAll("text")].map((text) => {
      const around = [];
      for (let e = text.parentElement; e.tagName === "g"; e = e.parentElement) around.unshift(e.querySelector("rect"));
      let ground = numbers(getComputedStyle(theme).backgroundColor);
      for (const rect of around) {
        const style = getComputedStyle(rect);
        ground = over(numbers(style.fill), ground, style.fillOpacity);
      }
      const ink = numbers(getComputedStyle(text).fill), a = light(over(ink, ground, ink[3])), b = light(ground);
      return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    });
    const least = [...document.querySelectorAll("main")].map((theme) => Math.min(...of(theme)));
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.body.textContent = `least ${JSON.stringify(least)} dark ${dark}`;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_pictures_in_documents_go_by_the_theme_and_not_by_the_system(tmp_path, dark):
    inside = Picture("inside", [Box(kind, kind) for kind in KINDS])
    deep = [Box(kind, kind, inside=[("inside", inside)]) for kind in ("loop", "branch")]
    drawn = svg(Picture("p", [*inside.boxes, *deep, Box("twice", "loop", inside=[("deep", Picture("d", deep))])]))
    themes = ["background:#fff;color:rgba(0,0,0,.87)", "background:#111;color:#fff", "background:#1e1e1e;color:#ccc"]
    (tmp_path / "p.html").write_text(
        "".join(f'<main style="{theme}">{drawn}</main>' for theme in themes) + f"<script>{CONTRASTS}</script>", "utf-8"
    )
    text = dom(tmp_path / "p.html", f"--blink-settings=preferredColorScheme={1 - dark}")
    said = re.search(r"least (\[.*?\]) dark (\w+)", text)
    assert said, "the script has thrown"
    assert said[2] == str(dark).lower()
    least = json.loads(said[1])
    assert len(least) == len(themes)
    assert min(least) > 4.5, "text that is hard to read"


@pytest.mark.parametrize("dark", [False, True])
def test_a_file_of_its_own_goes_by_the_system(tmp_path, dark):
    script = "<script>const s = getComputedStyle(document.documentElement);"
    script += 'document.documentElement.setAttribute("data-said", s.color + " on " + s.backgroundColor)</script>'
    made = svg(Picture("p", [Box("a")])).replace("</svg>", script + "</svg>")
    (tmp_path / "p.svg").write_text(made, "utf-8")
    (tmp_path / "p.html").write_text(page(Picture("p")).replace("</html>", script + "</html>"), "utf-8")
    for name in ("p.svg", "p.html"):
        text = dom(tmp_path / name, f"--blink-settings=preferredColorScheme={1 - dark}")
        ink, ground = re.search(r'data-said="rgb\((\d+),.*? on rgb\((\d+),', text).groups()
        assert (int(ink) > 200, int(ground) < 60) == (dark, dark)


CHANGED = """
    const root = document.querySelector("main"), inks = new Set(), write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (...told) {
      inks.add(this.fillStyle);
      console.log("inks", ...inks);
      return write.apply(this, told);
    };
    show(root, DATA);
    setTimeout(() => { root.style.color = "#fff"; }, 500);
"""


def test_the_explorer_is_drawn_again_when_the_theme_changes(tmp_path):
    script = part("page.js").replace("export default ", "") + CHANGED.replace("DATA", json.dumps(data_of(nested())))
    (tmp_path / "p.html").write_text(
        f"<style>{part('page.css')}</style><main style='height:600px;color:#000'></main><script>{script}</script>",
        "utf-8",
    )
    # A transition goes on by frames, of which a busy machine makes few: no time is set, but what is drawn is read until
    # it is there.
    command = [CHROMIUM, *SWITCHES, "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"]
    with subprocess.Popen(
        [*command, (tmp_path / "p.html").as_uri()], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as browser:
        late = threading.Timer(120, os.killpg, (browser.pid, signal.SIGKILL))
        late.start()
        try:
            drawn = any("inks #000000 #ffffff" in line for line in browser.stderr)
        finally:
            late.cancel()
            os.killpg(browser.pid, signal.SIGKILL)
    assert drawn

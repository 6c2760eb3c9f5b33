"""B20: a page of 10⁴ nodes in headless Chromium, from the begin of loading to the first drawn frame, after which it
answers; and writing it.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row

SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1600,1000"]


def run(harness: Harness) -> list[Row]:
    """The page of a graph of many nodes that read near ones, and a few far ones."""
    nodes = 500 if harness.quick else 10_000
    row = ("B20", f"HTML page of {nodes} nodes in Chromium, to the first frame", "≤ 3 s")
    graph = graph_of(nodes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.html"
        begin = time.perf_counter()
        graph.to_html(path)
        written = time.perf_counter() - begin
        detail = f"{path.stat().st_size / 1e6:.1f} MB, written in {written:.1f} s"
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if chromium is None:
            return [Row(*row, None, 3, unit="s", detail=f"no Chromium is here; {detail}")]
        times = [ready_in(chromium, path) for _ in range(1 if harness.quick else 3)]
    return [Row(*row, min(times), 3, unit="s", detail=detail)]


def graph_of(nodes: int) -> pyop.Graph:
    """A graph of so many nodes."""
    chance = random.Random(1)

    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        while len(values) < nodes:
            near, other = (values[-chance.randint(1, min(len(values), 8))] for _ in range(2))
            far = chance.choice(values) if chance.random() < 0.02 else near
            values.append(np.sin(other) if chance.random() < 0.35 else far + other)
        return values[-1]

    return pyop.trace(function, "float64[n]", "float64[n]")


def ready_in(chromium: str, path: Path) -> float:
    """Seconds until the page has drawn, by its own clock, which begins with the loading."""
    done = subprocess.run(
        [chromium, *SWITCHES, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    found = re.search(r'data-ready="(\d+)"', done.stdout)
    if found is None:
        raise RuntimeError("the page has not drawn anything: open it in a browser and look at its console")
    return int(found[1]) / 1000

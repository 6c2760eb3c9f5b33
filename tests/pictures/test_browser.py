"""The page in a browser, where there is one: it draws, and scripts in names do not run."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import pyop
from pyop.pictures.model import Box, Edge, Picture
from pyop.pictures.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=1200,800"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def dom(path) -> str:
    command = [CHROMIUM, *SWITCHES, f"--user-data-dir={path.parent / 'profile'}", "--dump-dom", path.as_uri()]
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

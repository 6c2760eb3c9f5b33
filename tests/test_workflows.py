"""The workflows of .github: actions by hash, least permissions, nothing of an event pasted into a shell."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# What a job may do beside reading, and why: `publish` proves who it is to the index, and attests what it publishes.
GRANTED = {"release.yml": {"id-token", "attestations"}}
IN_CHECKOUT = pytest.mark.skipif(not WORKFLOWS, reason="an sdist has no .github")

each = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def steps(text: str) -> list[str]:
    """Return the steps of all jobs, each as its lines."""
    return re.split(r"^ +- (?=uses:|run:|name:)", text, flags=re.MULTILINE)[1:]


@IN_CHECKOUT
def test_there_are_workflows():
    assert {"ci.yml", "release.yml"} <= {path.name for path in WORKFLOWS}


@each
def test_actions_are_pinned_by_hash(path):
    """A tag or a branch of an action can be moved; the comment says which version the hash is."""
    used = re.findall(r"^.*\buses: (.*)$", path.read_text(), re.MULTILINE)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@each
def test_no_expression_is_pasted_into_a_shell(path):
    """A branch may be called `$(command)`: a step reads such text from its environment."""
    for step in steps(path.read_text()):
        script = re.search(r"^(?: *)run:(.*?)(?=^ *(?:env|with|name|if|shell):|\Z)", step, re.MULTILINE | re.DOTALL)
        assert "${{" not in (script[1] if script else ""), step


@each
def test_permissions_are_the_least(path):
    text = path.read_text()
    assert re.search(r"^permissions:\n  contents: read\n\n", text, re.MULTILINE)
    assert {*re.findall(r"([\w-]+): write\b", text)} == GRANTED.get(path.name, set())
    assert "write-all" not in text


@each
def test_no_checkout_leaves_a_token_behind(path):
    checkouts = [step for step in steps(path.read_text()) if "actions/checkout@" in step]
    assert [step for step in checkouts if "persist-credentials: false" not in step] == []


@IN_CHECKOUT
def test_what_changes_upstream_is_asked_for():
    text = (ROOT / ".github/dependabot.yml").read_text()
    assert "package-ecosystem: github-actions" in text
    assert "directory: /.ci" in text


def test_the_citation_is_of_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()

"""Each folder of csrc/ and python/pyop/ has a README that names files which are there and allows all that it uses."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from pathlib import Path

import pytest

from tests.test_csrc import FILES as SOURCES
from tests.test_csrc import LAYERS, includes
from tests.test_layers import FILES as MODULES
from tests.test_layers import imports

ROOT = Path(__file__).parents[1]


def folders() -> list[str]:
    """Return the folders that hold sources, and those above them."""
    held = {
        folder
        for top in ("csrc", "python/pyop")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".h", ".cpp"}
        for folder in path.relative_to(ROOT).parents
    }
    tops = [folder for folder in held if folder.parts[:1] == ("csrc",) or folder.parts[:2] == ("python", "pyop")]
    return sorted(folder.as_posix() for folder in tops)


FOLDERS = folders()
NAMES = {path.name for top in ("csrc", "python/pyop", "tests") for path in (ROOT / top).rglob("*.*")}
each = pytest.mark.parametrize("folder", FOLDERS)


def text_of(folder: str) -> str:
    return (ROOT / folder / "README.md").read_text()


def allowed(text: str, verb: str) -> set[str] | None:
    """Return what a README says its folder may include or import; None if it says nothing."""
    line = re.search(rf"^May {verb}: (.*)\.$", text, re.MULTILINE)
    return line and {name.rstrip("/") for name in re.findall(r"`([^`]+)`", line[1])}


def test_there_are_many_folders():
    assert len([folder for folder in FOLDERS if folder.startswith("csrc")]) > 25
    assert len([folder for folder in FOLDERS if folder.startswith("python")]) > 20


@each
def test_it_opens_with_what_the_folder_is_for(folder):
    """The first part is short; details stand below headings."""
    title, _, rest = text_of(folder).partition("\n\n")
    opening = rest.partition("\n## ")[0]
    assert title == f"# {folder}"
    assert re.match(r"[A-Z`]", opening)
    assert "\nRead first:\n\n- `" in opening
    assert len(opening.splitlines()) <= 20
    assert len(opening.split()) <= 160


@each
def test_what_it_names_is_there(folder):
    """A path leads from here or from one of the tops; a file by its name alone is anywhere below them."""
    pattern = r"`((?:[\w*./]+/)?[\w*.]+\.(?:py|h|cpp|toml|md|txt|pyx|pxd|js)|(?:tests|csrc|python|\.ci)/[\w./*]*)[`:]"
    bases = [ROOT / folder, ROOT, *(ROOT / top for top in ("csrc", "python", "python/pyop", "csrc/plan"))]
    dead = [
        name
        for name in re.findall(pattern, text_of(folder))
        if not any([*base.glob(name.rstrip("/"))] for base in bases)
        and ("/" in name or not fnmatch.filter(NAMES, name))
    ]
    assert dead == []


@each
def test_links_lead_somewhere(folder):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text_of(folder))
    assert [target for target in targets if not (ROOT / folder / target).exists()] == []


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name.startswith("csrc/")])
def test_a_folder_of_csrc_includes_what_its_readme_says(folder):
    own = folder.removeprefix("csrc/")
    files = [file for file in SOURCES if file.rpartition("/")[0] == own]
    may = allowed(text_of(folder), "include")
    assert (may is None) == (not files)
    for file in files:
        unsaid = [
            other for other in includes(file) if not f"{other}/".startswith(tuple(f"{name}/" for name in [own, *may]))
        ]
        assert unsaid == [], file


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name.startswith("csrc/")])
def test_a_readme_allows_no_more_than_the_layers(folder):
    own = folder.removeprefix("csrc/")
    orders = [[name.rstrip("/") for name in LAYERS[part]] for part in ("array", "csrc")]
    for name in allowed(text_of(folder), "include") or ():
        order = next(order for order in orders if {own, name} <= {*order} or order is orders[-1])
        ranks = [next(k for k, top in enumerate(order) if f"{path}/".startswith(f"{top}/")) for path in (name, own)]
        assert ranks == sorted(ranks), name


def room(file: str) -> str:
    """Return the folder of a module, one for all families of functions; the module itself at the top of the package."""
    folder = file.rpartition("/")[0] or file
    return "functions" if folder.startswith("functions/") else folder


@pytest.mark.parametrize("folder", [name for name in FOLDERS if name.startswith("python/pyop/")])
def test_a_folder_of_python_imports_what_its_readme_says(folder):
    own = folder.removeprefix("python/pyop/")
    files = [file for file in MODULES if file.rpartition("/")[0] == own]
    used = {room(other) for file in files for other, _ in imports(file) if other}
    assert used - {own} - allowed(text_of(folder), "import") == set()


def test_the_page_above_them_stays_short():
    """Details belong into the READMEs."""
    page = (ROOT / "docs/architecture.md").read_text()
    assert len(page.split()) <= 3000
    assert page.count("\n```\n") == 6, "three diagrams: data flow, a call, a trace"


def test_wheels_carry_no_readmes():
    exclude = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["exclude"]
    assert "README.md" in exclude

"""The gallery has every program, its pages are made of what runs, and the notebooks run."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("pyop_gallery_make", DOCS / "gallery" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_has_a_field_and_a_line(gallery):
    named = [name for names in gallery.FIELDS.values() for name in names]
    assert sorted(named) == sorted(path.stem for path in gallery.EXAMPLES.glob("*.py"))
    listed = (DOCS / "gallery.md").read_text()
    assert [name for name in named if f"../examples/{name}.py" not in listed] == []


def test_a_page_has_picture_output_and_program(gallery, tmp_path):
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    source = gallery.EXAMPLES / "n_body.py"
    text = gallery.page(source, tmp_path)
    assert text.startswith("# Three stars on one curve")
    assert "![" in text
    assert "minus the force" in text
    assert "def accelerations(where):" in text
    assert (tmp_path / "n_body.svg").exists()
    assert "n_body.md" in gallery.index()


def test_a_program_that_fails_stops_the_build(gallery, tmp_path):
    program = tmp_path / "wrong.py"
    program.write_text('"""Wrong."""\nraise SystemExit("no")\n')
    with pytest.raises(RuntimeError, match=r"wrong\.py failed"):
        gallery.page(program, tmp_path)


def test_a_program_runs_once_until_it_changes(gallery, tmp_path, monkeypatch):
    examples, made = tmp_path / "examples", tmp_path / "made"
    examples.mkdir()
    runs = tmp_path / "runs"
    program = f'"""{{title}}."""\nopen({str(runs)!r}, "a").write("{{title}} ")\n'
    for title in ("First", "Second"):
        (examples / f"{title.lower()}.py").write_text(program.format(title=title))
    monkeypatch.setattr(gallery, "EXAMPLES", examples)
    monkeypatch.setattr(gallery, "FIELDS", {"Tests": ("first", "second")})
    assert [path.name for path in gallery.make(made, at_once=2)] == ["first.md", "second.md"]
    assert gallery.make(made) == []
    (examples / "first.py").write_text(program.format(title="Other"))
    assert [path.name for path in gallery.make(made)] == ["first.md"]
    assert sorted(runs.read_text().split()) == ["First", "Other", "Second"]
    assert "Other" in (made / "index.md").read_text()

    monkeypatch.setattr(gallery, "FIELDS", {"Tests": ("second",)})
    assert gallery.make(made) == []
    assert sorted(path.name for path in made.glob("*.md")) == ["index.md", "second.md"]


def code(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_two_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path):
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code(path))


RUN = """
import sys
import nbclient, nbformat
from jupyter_client.manager import AsyncKernelManager
kernel = AsyncKernelManager()  # of this interpreter, whichever kernels the machine has
kernel.kernel_spec.argv[0] = sys.executable
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, km=kernel, timeout=300).execute()
print("".join(out.get("text", "") for cell in notebook.cells for out in cell.get("outputs", ())))
"""


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("function_to_plan", ["nodes, whatever the number of steps", "calls in"]),
        ("black_box_fit", ["gradient      pass", "found ["]),
    ],
)
def test_notebook_runs(name, shows, tmp_path):
    """In a process of its own: what Jupyter's packages leave open is not ours."""
    pytest.importorskip("nbclient", reason="the notebooks group is not installed")
    pytest.importorskip("ipykernel", reason="the notebooks group is not installed")
    command = [sys.executable, "-c", RUN, str(DOCS / "notebooks" / f"{name}.ipynb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for text in shows:
        assert text in done.stdout

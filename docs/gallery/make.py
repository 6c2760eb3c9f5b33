"""The pages of the gallery: each program of examples/, what it prints, and the picture that it draws.

The build of the site calls `make(folder)`; `python docs/gallery/make.py` does it by hand. Pages and pictures go into a
folder that git ignores. A program runs again where it is newer than its page.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
# By field; a program that is not named here is a failed test.
FIELDS = {
    "Physics": ("n_body", "waves", "ising", "heat_fit"),
    "Life, chemistry, machines": ("epidemic", "reaction_network", "black_box_simulator", "kalman_filter"),
    "Data": ("gaussian_process", "k_means", "pipeline", "seeds_front_doors"),
    "Money, sound, images": ("option_pricing", "melody", "find_edges"),
}


def about(path: Path) -> tuple[str, str]:
    """Title and text of a program, by its docstring; the commands at its end are left out."""
    title, _, rest = (ast.get_docstring(ast.parse(path.read_text())) or path.stem).partition("\n")
    kept = [part for part in rest.strip().split("\n\n") if not part.startswith("    python ")]
    return title.strip().rstrip("."), "\n\n".join(kept)


def draws(path: Path) -> bool:
    return '"--plot"' in path.read_text()


def run(path: Path, picture: Path) -> str:
    """What a program prints; its picture is drawn into a file if it draws one."""
    command = [sys.executable, "-W", "ignore", str(path)]
    if draws(path):
        command += ["--plot", str(picture)]
    environment = {**os.environ, "MPLBACKEND": "Agg", "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"{path.name} failed, and the gallery shows what it prints:\n{done.stderr}")
    return done.stdout.rstrip()


def page(path: Path, folder: Path) -> str:
    """The page of one program, as MyST."""
    title, text = about(path)
    picture = folder / f"{path.stem}.svg"
    printed = run(path, picture)
    shown = f"![{title}]({picture.name})\n\n" if picture.exists() else ""
    return (
        f"# {title}\n\n{text}\n\n{shown}"
        f"## What it prints\n\n````\n{printed}\n````\n\n"
        f"## The program\n\n`examples/{path.name}`\n\n````python\n{path.read_text().rstrip()}\n````\n"
    )


def index() -> str:
    """The list of the programs, by field."""
    parts = []
    for field, names in FIELDS.items():
        lines = [f"- [{about(EXAMPLES / f'{name}.py')[0]}]({name}.md)" for name in names]
        parts.append(f"## {field}\n\n" + "\n".join(lines))
    listed = "\n".join(name for names in FIELDS.values() for name in names)
    return "# Programs\n\n" + "\n\n".join(parts) + f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{listed}\n```\n"


def make(folder: str | os.PathLike[str] = HERE / "_made") -> list[Path]:
    """Write index and pages into a folder; returns the pages that were written anew.

    >>> make("docs/gallery/_made")  # doctest: +SKIP
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in (name for names in FIELDS.values() for name in names):
        source, target = EXAMPLES / f"{name}.py", folder / f"{name}.md"
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            target.write_text(page(source, folder))
            written.append(target)
    (folder / "index.md").write_text(index())
    return written


if __name__ == "__main__":
    print(*make(*sys.argv[1:2]), sep="\n")

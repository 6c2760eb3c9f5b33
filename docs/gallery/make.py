"""The pages of the gallery: each program of examples/, what it prints, and the picture that it draws.

The build of the site calls `make()` (docs/conf.py); `python docs/gallery/make.py` does it by hand. Pages and pictures
go into a folder that git ignores. A page says in its last line what it was made of, and is made again when it changes.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyop

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


def made_of(path: Path) -> str:
    """What a page depends on: its program, this file, and the version of pyop; a comment of MyST."""
    parts = (path.read_bytes(), Path(__file__).read_bytes(), pyop.__version__.encode())
    return f"% made of {hashlib.sha256(b''.join(parts)).hexdigest()}\n"


def page(path: Path, folder: Path) -> str:
    """The page of one program, as MyST."""
    title, text = about(path)
    picture = folder / f"{path.stem}.svg"
    printed = run(path, picture)
    shown = f"![{title}]({picture.name})\n\n" if picture.exists() else ""
    return (
        f"# {title}\n\n{text}\n\n{shown}"
        f"## What it prints\n\n````text\n{printed}\n````\n\n"
        f"## The program\n\n`examples/{path.name}`\n\n````python\n{path.read_text().rstrip()}\n````\n\n"
        f"{made_of(path)}"
    )


def index(folder: Path = HERE / "_made") -> str:
    """The list of the programs, by field, with the pictures that are in the folder."""
    parts, listed = [], []
    for field, names in FIELDS.items():
        lines = []
        for name in names:
            title = about(EXAMPLES / f"{name}.py")[0]
            picture = f"![]({name}.svg) " if (folder / f"{name}.svg").exists() else ""
            lines.append(f"- [{picture}{title}]({name}.md)")
            listed.append(f"{title.partition(':')[0]} <{name}>")
        parts.append(f"## {field}\n\n```{{container}} programs\n\n" + "\n".join(lines) + "\n```")
    hidden = "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + "\n".join(listed) + "\n```\n"
    return "# Programs\n\n" + "\n\n".join(parts) + "\n\n" + hidden


def make(folder: str | os.PathLike[str] = HERE / "_made", at_once: int = 1) -> list[Path]:
    """Write index and pages into a folder; returns the pages that were written anew.

    Up to `at_once` programs run at the same time.

    >>> make("docs/gallery/_made")  # doctest: +SKIP
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [EXAMPLES / f"{name}.py" for names in FIELDS.values() for name in names]
    targets = [folder / f"{source.stem}.md" for source in sources]
    for left in {*folder.glob("*.md")} - {*targets, folder / "index.md"}:  # of a program that is there no more
        left.unlink()
        left.with_suffix(".svg").unlink(missing_ok=True)
    stale = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if not target.exists() or not target.read_text().endswith(made_of(source))
    ]
    with ThreadPoolExecutor(max(1, at_once)) as pool:
        pages = pool.map(lambda pair: page(pair[0], folder), stale)
        for (_, target), text in zip(stale, pages, strict=True):
            target.write_text(text)
    _write_if_new(folder / "index.md", index(folder))
    return [target for _, target in stale]


def _write_if_new(path: Path, text: str) -> None:
    """Sphinx reads a file again that has been touched."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    print(*make(*sys.argv[1:2]), sep="\n")

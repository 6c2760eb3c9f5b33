"""Show the demonstration's program as its source and as a tree of the plan, and a derivative of it."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from rich.console import Console
from rich.syntax import Syntax
from rich.tree import Tree

import pyop

from .pipeline import features, moments, recognise, topology, upright

__all__ = ["gradient_of_lean", "picture", "show_program", "tree_of"]

_SHADES = " .:-=+*#%@"


def show_program(console: Console, plan: pyop.Plan) -> None:
    """Print the functions of the pipeline, and the plan they became."""
    source = "\n\n".join(inspect.getsource(f).rstrip() for f in (upright, topology, features, recognise))
    console.print("[bold]What runs[/]", Syntax(source, "python", theme="ansi_dark", background_color="default"), "")
    console.print(tree_of(plan), "")


def tree_of(plan: pyop.Plan) -> Tree:
    """Return the plan in the order of its instructions, grouped by the line that asked for them."""
    tree = Tree(f"[bold]What it became[/]: {plan.graph.name}({', '.join(plan.input_names)})")
    lines: dict[str, Tree] = {}
    for k in range(plan.report()["instructions"]):
        native, nodes, text = plan._instruction(k)
        where = nodes[-1].origin.rpartition("/")[2]
        branch = lines.get(where) or lines.setdefault(where, tree.add(f"[dim]{where}[/]"))
        what = " → ".join(node.name for node in nodes)
        branch.add(f"[green]{what}[/]  [dim]{text}[/]" if native else f"[yellow]{what}[/]  [dim]Python[/]")
    return tree


def gradient_of_lean(image: Any) -> Any:
    """Return how each pixel would change the lean of the digit: a derivative of the pipeline's own function."""
    return pyop.grad(lambda x: moments(x).slant)(np.asarray(image, np.float64))


def picture(image: Any, gradient: Any) -> str:
    """Return an image, and a gradient by sign and size, beside each other."""
    peak, steepest = float(np.max(np.abs(image))) or 1.0, float(np.max(np.abs(gradient))) or 1.0
    lines = []
    for pixels, slopes in zip(image.tolist(), gradient.tolist(), strict=True):
        left = "".join(2 * _SHADES[min(9, int(9 * max(v, 0.0) / peak))] for v in pixels)
        right = "".join(f"{'+' if v > 0 else '-'}{round(9 * abs(v) / steepest)}"
                        if abs(v) > steepest / 18 else " ." for v in slopes)  # fmt: skip
        lines.append(f"{left}   {right}")
    return "\n".join(lines)

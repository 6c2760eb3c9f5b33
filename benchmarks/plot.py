"""The plot of `python -m benchmarks.report`: times as fast as NumPy by size, and first calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from .candidates import CANDIDATES, NUMPY, PYOP

# Okabe and Ito's colours, apart for every kind of colour vision; markers say the same in black and white.
LOOKS = {
    PYOP: ("#D55E00", "o"),
    "numexpr": ("#0072B2", "s"),
    "numba njit": ("#009E73", "^"),
    "numba vectorize": ("#56B4E9", "v"),
    "PyTensor C": ("#CC79A7", "D"),
    "PyTensor numba": ("#000000", "P"),
    "JAX": ("#E69F00", "X"),
}
TITLES = {"ordinary": "ordinary process", "warm": "allocator kept warm"}


def draw(found: dict[str, Any], path: Path) -> None:
    """Write the PNG."""
    steady, first = found["steady"], found["first"]
    states = list(dict.fromkeys(one["state"] for one in steady))
    texts = list(dict.fromkeys(one["expression"] for one in steady))
    figure, grid = pyplot.subplots(
        len(texts), len(states) + 1, figsize=(14, 8), width_ratios=[*[1.25] * len(states), 1], layout="constrained"
    )
    figure.suptitle("NumPy expressions on one core", fontsize=15, fontweight="bold")
    for row, text in enumerate(texts):
        for column, state in enumerate(states):
            here = [one for one in steady if (one["expression"], one["state"]) == (text, state)]
            axes = grid[row, column]
            _speeds(axes, here)
            axes.set_title(f"{text}\n{TITLES[state]}", fontsize=11)
            axes.set_ylim(*_limits(steady, text))
            if column == 0:
                axes.set_ylabel("times as fast as NumPy")
        _first_calls(grid[row, -1], {one["name"]: one["seconds"] for one in first if one["expression"] == text})
        grid[row, -1].set_title(f"{text}\nfirst call, compilation included", fontsize=11)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def _limits(steady: list[dict[str, Any]], text: str) -> tuple[float, float]:
    """Of both states of the allocator, so that they can be compared."""
    speeds = [speed for one in steady if one["expression"] == text for speed in one["faster"].values()]
    return min(speeds) / 1.4, max(speeds) * 1.4


def _speeds(axes: Axes, measured: list[dict[str, Any]]) -> None:
    sizes = [one["size"] for one in measured]
    axes.axhline(1, color="0.35", linewidth=1.2, linestyle="--", zorder=1)
    axes.annotate("NumPy", (1, 1), xycoords=("axes fraction", "data"), xytext=(2, 0), textcoords="offset points",
                  va="center", fontsize=9, color="0.35")  # fmt: skip
    for name in (n for n in CANDIDATES if n in measured[0]["faster"] and n != NUMPY):
        colour, marker = LOOKS[name]
        own = name == PYOP
        axes.plot(
            sizes,
            [one["faster"][name] for one in measured],
            color=colour,
            marker=marker,
            markersize=8 if own else 6,
            linewidth=3 if own else 1.5,
            zorder=4 if own else 3,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("elements of each array (float64)")
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)


def _first_calls(axes: Axes, seconds: dict[str, float]) -> None:
    names = [name for name in reversed(CANDIDATES) if name in seconds]
    values = [seconds[name] for name in names]
    bars = axes.barh(names, values, color=[LOOKS[name][0] for name in names], height=0.65)
    axes.bar_label(bars, [f" {1e3 * v:.3g} ms" if v < 1 else f" {v:.3g} s" for v in values], fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(min([*values, 1e-3]) / 2, max([*values, 1e-3]) * 8)
    axes.set_xlabel("seconds (log)")
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right"]].set_visible(False)

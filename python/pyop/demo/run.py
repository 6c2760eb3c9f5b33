"""Run the pipeline four ways, compare the results bit by bit, and print what each way costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import pyop

from .data import SOURCE, Digits, load
from .pipeline import OPS, PLAIN, Array, Stages, recognise, with_kernels
from .shown import gradient_of_lean, picture, show_program
from .timing import interleaved, overhead

Result = dict[str, Any]

TIMED_RECORDS = 40


def slow(items: Iterable[Any], total: int, label: str, console: Console) -> Iterator[Any]:
    """Pass the items on; show a progress bar once that has taken over a second."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    begin, shown = time.monotonic(), False
    task = progress.add_task(label, total=total)
    try:
        for done, item in enumerate(items):
            if not shown and time.monotonic() - begin > 1.0:
                progress.start()
                shown = True
            progress.update(task, completed=done)
            yield item
    finally:
        if shown:
            progress.stop()


def same_bits(one: Result, other: Result) -> bool:
    """Return whether two results agree in keys, types, shapes and every bit."""
    arrays = [(np.asarray(one[key]), np.asarray(other[key])) for key in one if key in other]
    return one.keys() == other.keys() and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in arrays
    )


def compiled(digits: Digits, stages: Stages = OPS) -> pyop.Plan:
    """Return the pipeline as a plan for one image; the examples become constants of the graph."""
    return pyop.trace(lambda image: recognise(image, digits.examples, stages), "float64[8, 8]").compile()


def numbers(title: str, *columns: str) -> Table:
    """Return a table of numbers; its first column labels the rows."""
    table = Table(*columns, title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def what_was_read(digits: Digits, results: list[Result]) -> Table:
    """Return a table of the pipeline's results, digit by digit."""
    table = numbers("What was read", "digit", "images", "read rightly", "mean holes", "mean lean")
    truth = digits.truth
    right = np.array([int(result["digit"]) for result in results]) == truth
    holes = np.array([int(result["holes"]) for result in results])
    lean = np.degrees([float(result["lean"]) for result in results])
    for digit in np.unique(truth).tolist():
        here = truth == digit
        table.add_row(
            str(digit),
            str(here.sum()),
            f"{right[here].mean():.0%}",
            f"{holes[here].mean():.2f}",
            f"{round(lean[here].mean()):+d}°",
        )
    table.add_section()
    table.add_row("all", str(len(truth)), f"{right.mean():.1%}", f"{holes.mean():.2f}", f"{round(lean.mean()):+d}°")
    return table


def main(*, records: int | None = None, rounds: int = 15) -> int:
    """Run the demonstration; return 1 if plain Python and the plan disagree."""
    console = Console()
    digits = load(records)
    plan = compiled(digits)
    ways: dict[str, Callable[[Array], Result]] = {
        "plain Python": lambda image: recognise(image, digits.examples, PLAIN),
        "eager ops, checked": lambda image: recognise(image, digits.examples, OPS),
        "compiled plan, checked": plan,
        "plan, a stage in Cython": compiled(digits, with_kernels()),
    }
    console.print(f"{SOURCE}.", highlight=False)
    console.print(
        f"Class means learnt from {digits.learnt_from} images; {len(digits.images)} others are read.\n", highlight=False
    )

    show_program(console, plan)

    equal = dict.fromkeys(ways, True)
    plain: list[Result] = []
    for image in slow(digits.images, len(digits.images), "reading every image four ways", console):
        reference, *others = (way(image) for way in ways.values())
        plain.append(reference)
        for name, other in zip(list(ways)[1:], others, strict=True):
            equal[name] &= same_bits(reference, other)
    console.print(what_was_read(digits, plain), "")

    batch = digits.images[:TIMED_RECORDS]

    def read_all(way: Callable[[Array], Result]) -> Callable[[], None]:
        def batch_of() -> None:
            for image in batch:
                way(image)

        return batch_of

    timed = {name: read_all(way) for name, way in ways.items()}
    samples = interleaved(timed, slow(range(rounds), rounds, "timing, one way after the other", console))
    cost = overhead(batch[0], digits.examples, slow(range(rounds), rounds, "timing calls without work", console))

    table = numbers("What it costs", "way", "same bits", "µs a record", "of plain", "call overhead")
    base = samples["plain Python"]
    for name, per_call in zip(ways, (cost.bare, cost.eager, cost.plan, None), strict=True):
        ratio = statistics.median(a / b for a, b in zip(samples[name], base, strict=True))
        bits = "-" if name == "plain Python" else "yes" if equal[name] else "NO"
        each = statistics.median(samples[name]) / len(batch) / 1000
        table.add_row(name, bits, f"{each:.0f}", f"{ratio:.2f}×", "-" if per_call is None else f"{per_call:.0f} ns")
    console.print(table)
    console.print(
        f"Call overhead: a stage is called whose body only returns a stored result;\n"
        f"mean of the {cost.calls} calls that read one image. Medians of {rounds} interleaved rounds, CPU time.\n",
        highlight=False,
        style="dim",
    )

    console.print(what_was_done(plan), "")
    image = digits.images[0]
    console.print(
        "An image, and how each pixel would change its lean: pyop.grad of the same functions.", highlight=False
    )
    console.print(picture(image, gradient_of_lean(image)), "", highlight=False, markup=False)
    if not all(equal.values()):
        console.print("[bold red]The results differ.[/]")
        return 1
    console.print(f"All {len(digits.images)} results are equal bit for bit.", highlight=False)
    return 0


def what_was_done(plan: pyop.Plan) -> Table:
    """Return a table of what compiling did to the graph."""
    report = plan.report()
    table = Table("nodes", "", "why", title="What compiling did", title_justify="left")
    table.columns[0].justify = "right"
    given = report["nodes"] - sum(report[what] for what in ("merged", "folded", "pruned", "instructions"))
    table.add_row(str(report["nodes"]), "traced", "one for every input, constant and call on a symbolic array")
    table.add_row(f"-{report['merged']}", "merged", "the same function on the same inputs: two helpers asked for it")
    table.add_row(f"-{report['folded']}", "folded", "only constants come in: computed once, when compiling")
    table.add_row(f"-{report['pruned']}", "pruned", "nobody reads the result")
    table.add_row(f"-{given}", "given", "inputs and constants: nothing to run")
    table.add_section()
    table.add_row(str(report["instructions"]), "run", "for every record")
    return table

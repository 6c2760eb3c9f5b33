"""A program run by plans of every kind, each held against NumPy: values, dtypes, shapes, warnings; inputs intact."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import pyop
from pyop.compiling import worth

from .arrays import LAYOUTS, Array, make
from .program import Line, Program, Reference, Said

worth.stand_still()

PASSES = list(pyop.Graph.passes())
# What a Value cannot be asked, in the words of its error.
EXCUSES = (
    "known when the graph is built",
    "'NoneType' object",
    "argument after * must be",
    "must be an iterable, not NoneType",
    "a Value is immutable",
    "` at ",  # an operator in place, refused with its line
    "it is not known whether NumPy has an array here",
)

# Of two long rows these make a large table.
PRODUCTS = ("outer", "kron", "dot", "einsum", "@", "matmul", "eigvalsh", "broadcast_to", "[:, ", "None]")


class Difference(AssertionError):
    """A plan and NumPy differ; says in which way of running it."""

    def __init__(self, way: str, what: str) -> None:
        super().__init__(f"{way}: {what}")
        self.way = way
        self.kind = "warning" if what.startswith("warns") else what.partition(":")[0] if "Error" in what else "result"


def difference(got: Any, want: np.ndarray) -> str | None:
    """How a result differs: dtype, shape, or any bit but the sign and payload of a NaN."""
    if type(got) is not np.ndarray:
        return f"a {type(got).__name__} instead of an array"
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if got.dtype.char not in "gG" and got.tobytes() == want.tobytes():
        return None
    alike = _alike(got.real, want.real) & _alike(got.imag, want.imag) if got.dtype.kind == "c" else _alike(got, want)
    if np.all(alike):
        return None
    place = tuple(int(k) for k in np.argwhere(~np.asarray(alike))[0])
    count = int(np.sum(~np.asarray(alike)))
    return f"{got[place]!r} instead of {want[place]!r} at {place}, {count} of {got.size} elements differ"


def _alike(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind != "f":
        return a == b
    with np.errstate(all="ignore"):
        return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


def listening(function: Callable[[], Any]) -> tuple[Any, Said]:
    """What a call gives and the warnings it says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    return result, [(w.category, str(w.message)) for w in caught]


class Run:
    """One program, its graph, and what NumPy says of it."""

    def __init__(self, program: Program, reference: Reference, way: str, symbolic: bool = False) -> None:
        self.program, self.reference, self.way = program, reference, way
        self.want = [reference.values[k] for k in program.outputs]
        try:
            # A number is brought to the dtype of the array beside it here, and warns here if it does not fit.
            (self.graph, self.values), self.early = listening(lambda: program.graph(symbolic))
            self.graph.output([self.values[k] for k in program.outputs])
        except Exception as error:
            if any(text in str(error) for text in EXCUSES):
                raise Excused from None
            raise Difference(way, f"building the graph: {type(error).__name__}: {error}") from error

    def compiled(self, **options: Any) -> tuple[pyop.Plan, Said]:
        try:
            return listening(lambda: self.graph.compile(**options))
        except Exception as error:
            raise Difference(self.way, f"compile: {type(error).__name__}: {error}") from error

    def call(self, function: Callable[[], Any]) -> tuple[list[Any], Said]:
        try:
            return listening(function)
        except Exception as error:
            raise Difference(self.way, f"{type(error).__name__}: {error}") from error

    def compare(self, got: Sequence[Any], when: str) -> None:
        for k, (result, want) in enumerate(zip(got, self.want, strict=True)):
            if what := difference(result, want):
                raise Difference(self.way, f"output {k} {when}: {what}")

    def compare_warnings(self, said: Said, early: Said, when: str, *, exact: bool, lines: set[int]) -> None:
        """Equal calls are merged and then warn once, and those of constants warn when the plan is compiled."""
        if any(np.ndim(value) == 0 for value in self.reference.values):
            return  # of scalars, whose warnings have other words than those of arrays: test_scalar_operators.py
        early = [*self.early, *early]
        folded = self.program.of_constants()
        every = Counter(w for k in lines for w in self.reference.said[k])
        must = {w for k in lines - folded for w in self.reference.said[k]} - set(early)
        # What nobody reads may run, too, where what is made of it may be out of bounds.
        known = {w for line in self.reference.said for w in line}
        right = must <= set(said) <= known and set(early) <= known
        if exact and not early:
            right = every <= Counter(said) <= Counter(w for line in self.reference.said for w in line)
        if not right:
            raise Difference(
                self.way, f"warns {when} {_text(said)}, early {_text(early)}, but NumPy {_text(every.elements())}"
            )


def _text(said: Any) -> str:
    return str(sorted(f"{category.__name__}: {message}" for category, message in said))


class Excused(Exception):
    """A program that a graph may refuse, because it asks for a size that only numbers decide."""


def check_plan(run: Run, arrays: list[np.ndarray], *, lines: set[int], exact: bool = False, **options: Any) -> None:
    """Compile, and call twice; between the calls scribble over half of the results, and keep the others."""
    inputs = run.program.inputs(arrays)
    plan, early = run.compiled(**options)
    first, said = run.call(lambda: plan(*inputs))
    run.compare(first, "of the first call")
    run.compare_warnings(said, early, "in the first call", exact=exact, lines=lines)
    kept = []
    for k, result in enumerate(first):
        if k % 2 == 0:
            kept.append(k)
        elif not any(np.may_share_memory(result, other) for other in [*inputs, *first[::2]]):
            scribble(result)
    second, said = run.call(lambda: plan(*inputs))
    run.compare(second, "of the second call")
    run.compare_warnings(said, early, "in the second call", exact=exact, lines=lines)
    for k in kept:
        if what := difference(first[k], run.want[k]):
            raise Difference(run.way, f"output {k} of the first call changed in the second: {what}")


def scribble(a: np.ndarray) -> None:
    with warnings.catch_warnings():  # the views of np.broadcast_arrays warn
        warnings.simplefilter("ignore")
        if a.flags.writeable:
            a[...] = 1


def check_out(run: Run, r: random.Random, *, lines: set[int], **options: Any) -> None:
    """Results in arrays of the caller: of any layout, and now and then an input itself."""
    arrays = make(list(run.program.arrays))
    inputs = run.program.inputs(arrays)
    plan, early = run.compiled(**options)
    targets: list[Any] = []
    for want in run.want:
        mine = [
            x
            for x in inputs
            if x.dtype == want.dtype
            and x.shape == want.shape
            and x.flags.writeable
            and not any(np.may_share_memory(x, t) for t in targets if t is not None)
        ]
        choice = r.randrange(4)
        if mine and r.random() < 0.5:
            targets.append(mine[0])
        elif choice == 0 and want.ndim:
            targets.append(np.ones((*want.shape, 2), want.dtype)[..., 0])
        elif choice == 1:
            targets.append(np.ones(want.shape[::-1], want.dtype).T)
        elif choice == 2 and len(run.want) > 1:
            targets.append(None)
        else:
            targets.append(np.ones(want.shape, want.dtype))
    got, said = run.call(lambda: plan(*inputs, out=targets))
    run.compare(got, "with out=")
    run.compare_warnings(said, early, "with out=", exact=False, lines=lines)
    for k, (result, target) in enumerate(zip(got, targets, strict=True)):
        if target is not None and result is not target:
            raise Difference(run.way, f"output {k} is not the array given as out=")


def check_symbolic(program: Program, reference: Reference, r: random.Random, way: str) -> None:
    """One plan for all sizes: called at these sizes, at others, and at these again."""
    run = Run(program, reference, way, symbolic=True)
    live = program.live()
    plan, early = run.compiled()
    rows = all(len(a.shape) < 2 for a in program.arrays)
    large = 3 if not rows or any(word in line.text for line in program.lines for word in PRODUCTS) else 1030
    sizes = {size: r.choice([0, 1, 2, 6, 7, large]) for size in range(2, 6)}
    other = program.resized(sizes)
    try:
        there = other.reference(strict=False)
    except Exception:
        there = None
    raises = there is not None and other.raises()
    steps = [(program, reference), (other, there), (program, reference)]
    for this, expected in steps if there and sum(a.size for a in there.values) < 200_000 else steps[:1]:
        inputs = this.inputs(make(list(this.arrays)))
        run.want = [expected.values[k] for k in program.outputs]
        run.program, run.reference = this, expected
        when = f"at the inputs' shapes {[x.shape for x in inputs]}"
        try:
            got, said = run.call(lambda inputs=inputs: plan(*inputs))
        except Difference:
            if this is other and raises:
                continue  # sizes that nobody knew when the plan was made do not fit in a line that nobody reads
            raise
        run.compare(got, when)
        run.compare_warnings(said, early, when, exact=False, lines=live)


def check_relaid(run: Run, r: random.Random, **options: Any) -> None:
    """One plan for arrays of other numbers that lie otherwise; what it returned before stays as it was."""
    plan, _ = run.compiled(**options)
    kept: list[tuple[Any, bytes]] = []
    for _ in range(3):
        relaid: dict[Array, Array] = {}
        for a in run.program.arrays:
            other = replace(a, layout=r.choice(LAYOUTS), data=r.randrange(30), start=r.randrange(3))
            relaid.setdefault(a, a if a.constant else other)
        this = replace(run.program, arrays=tuple(relaid[a] for a in run.program.arrays))
        try:
            reference, _ = listening(lambda this=this: this.reference(strict=False))
        except Exception:
            continue
        run.want = [reference.values[k] for k in this.outputs]
        inputs = this.inputs(make(list(this.arrays)))
        try:
            got, _ = run.call(lambda inputs=inputs: plan(*inputs))
        except Difference:
            if this.raises():
                continue  # places that are out of bounds for these numbers, in a line that nobody reads
            raise
        run.compare(got, f"for arrays that lie as {[a.layout for a in this.arrays]}")
        for result, before in kept:
            if result.tobytes() != before:
                raise Difference(run.way, "a result of an earlier call has changed")
        kept += [(result, result.tobytes()) for result in got if r.random() < 0.5]


def check_over_inputs(run: Run, r: random.Random, **options: Any) -> None:
    """Results in windows of the memory that the inputs lie in."""
    arrays = make(list(run.program.arrays))
    moved: dict[Array, np.ndarray] = {}
    memory: list[np.ndarray] = []
    for a, concrete in zip(run.program.arrays, arrays, strict=True):
        if a.constant or a in moved:
            continue
        room = max([concrete.size, *[w.size for w in run.want if w.dtype == concrete.dtype]])
        memory.append(np.zeros(2 * room + 8, concrete.dtype))
        start = r.randrange(4)
        moved[a] = memory[-1][start : start + concrete.size].reshape(concrete.shape)
        moved[a][...] = concrete
    arrays = [moved.get(a, concrete) for a, concrete in zip(run.program.arrays, arrays, strict=True)]
    targets: list[np.ndarray] = []
    # Other strides may have other last bits.
    want, _ = listening(lambda: run.program.values(arrays))
    run.want = [want[k].copy() for k in run.program.outputs]
    for result in run.want:
        windows = [m for m in memory if m.dtype == result.dtype and m.size >= 2 * result.size + 8]
        target = np.empty(result.shape, result.dtype)
        if windows:
            start, step = r.randrange(5), r.choice([1, 1, 2])
            flat = r.choice(windows)[start : start + step * result.size : step][: result.size]
            shown = flat[:: r.choice([1, 1, -1])].reshape(result.shape)
            if np.may_share_memory(shown, flat):  # else there was no way to show it so
                target = shown
        if any(np.may_share_memory(target, t) for t in targets):
            target = np.empty(result.shape, result.dtype)
        targets.append(target)
    inputs = run.program.inputs(arrays)
    plan, _ = run.compiled(**options)
    got, _ = run.call(lambda: plan(*inputs, out=targets))
    run.compare(got, "with out= over the inputs")


def check_refused(program: Program, line: Line) -> None:
    """What NumPy refuses, the graph refuses when it is built or when it runs."""
    way = "refused by NumPy"
    for optimize in (True, False):
        try:
            graph, values = Program(program.arrays, program.lines, ()).graph()
            results = line.run(values, plain=False)
            graph.output(results)
            inputs = program.inputs(make(list(program.arrays)))
            plan, _ = listening(lambda graph=graph, optimize=optimize: graph.compile(optimize=optimize))
            got, _ = listening(lambda plan=plan, inputs=inputs: plan(*inputs))
        except Exception:
            continue
        raise Difference(way, f"{line.text} on {[program_value(program, k) for k in line.refs]} gives {got}")


def program_value(program: Program, k: int) -> str:
    value = program.reference().values[k]
    return f"{value.dtype}{list(value.shape)}"


def ways(
    program: Program, reference: Reference, r: random.Random, every: bool = False
) -> dict[str, Callable[[], None]]:
    """The ways of running a program, by name: some of them by chance, or every one."""
    state = r.randrange(2**30)
    live, all_lines = program.live(), set(range(len(program.lines)))
    some = lambda chance: every or r.random() < chance

    def plan(way: str, lines: set[int] = live, exact: bool = False, **options: Any) -> Callable[[], None]:
        def check() -> None:
            arrays = make(list(program.arrays))
            before = [a.tobytes() for a in arrays]
            check_plan(Run(program, reference, way), arrays, lines=lines, exact=exact, **options)
            if before != [a.tobytes() for a in arrays]:
                raise Difference(way, "wrote into an input")

        return check

    found = {"compile()": plan("compile()")}
    if some(0.3):
        found["compile(optimize=False)"] = plan("compile(optimize=False)", exact=True, optimize=False)
    if some(0.25):
        found["compile(threads=2)"] = plan("compile(threads=2)", threads=2)
    for name in PASSES if every else r.sample(PASSES, 1) if r.random() < 0.4 else []:
        way = f"compile(disable=[{name!r}])"
        found[way] = plan(way, all_lines if name == "prune" else live, disable=[name])
    if some(0.25):
        way, threads = "compile()(out=...)", 1 + state % 2
        found[way] = lambda: check_out(Run(program, reference, way), random.Random(state), lines=live, threads=threads)
    # Signs of NaNs are not compared, and other numbers may be NaNs.
    if some(0.15) and not any(word in line.text for line in program.lines for word in ("copysign", "signbit")):
        other = "relaid"
        found[other] = lambda: check_relaid(Run(program, reference, other), random.Random(state), threads=1 + state % 2)
    if some(0.15):
        over = "over the inputs"
        found[over] = lambda: check_over_inputs(
            Run(program, reference, over), random.Random(state), threads=1 + state % 2
        )
    if some(0.25):
        found["symbolic"] = lambda: check_symbolic(program, reference, random.Random(state), "symbolic")
    return found

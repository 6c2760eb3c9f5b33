"""Check by calls that an op keeps what it promises: `pyop.check`.

The checks cover what pyop relies on. A plan merges equal calls, runs them again, in another order and on other
threads, and hands results on without copying.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core import Op
from ._tree import flatten, map_leaves
from .declare.dim import Dim
from .declare.spec import Spec
from .machines.progress import progress_of

__all__ = ["Finding", "Report", "check", "example_of"]

SIZES = (3, 4, 5, 2, 6, 7)  # of named sizes, in the order of their names in the declaration
STEP = 1e-6
_REMARKS = ("writes", "globals")  # what is said there is no reason not to have looked


@dataclass(frozen=True)
class Finding:
    """Hold one line of a report.

    Attributes
    ----------
    what : str
        What was looked at.
    verdict : {"pass", "FAIL", "skipped"}
    text : str
        Why, in words.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> finding = pyop.check(pyop.op(np.negative, "float64[n] -> float64[n]")).findings[0]
    >>> finding.what, finding.verdict
    ('contract', 'pass')
    """

    what: str
    verdict: str
    text: str = ""


@dataclass(frozen=True)
class Report:
    """Hold the findings of one `check`. It is true if nothing failed, and prints as a table.

    Attributes
    ----------
    name : str
        Of the op or function.
    findings : tuple of Finding
    kind : {"op", "function"}

    Examples
    --------
    >>> import numpy as np, pyop
    >>> counter = iter(range(100))
    >>> report = pyop.check(pyop.op(lambda x: x + next(counter), "float64[n] -> float64[n]", name="counting"))
    >>> report.passed, [f.what for f in report.findings if f.verdict == "FAIL"][0]
    (False, 'purity')
    """

    name: str
    findings: tuple[Finding, ...]
    kind: str = "op"

    @property
    def passed(self) -> bool:
        """Return whether nothing failed."""
        return all(finding.verdict != "FAIL" for finding in self.findings)

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        lines = [f"{self.kind} {self.name!r}: {'passed' if self.passed else 'FAILED'}"]
        lines += [f"  {f.what:<14}{f.verdict:<9}{f.text}".rstrip() for f in self.findings]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from .graph.html import table

        rows = [(f.what, f.verdict, f.text) for f in self.findings]
        return table(str(self).partition("\n")[0], ("what", "verdict", "why"), rows)


class _Failed(Exception):
    """Report a broken promise, in words, from inside a check."""


def check(
    op: Callable[..., Any],
    *example: Any,
    seed: int = 0,
    rtol: float = 1e-4,
    progress: bool | Callable[[int, int | None], Any] = False,
    **statics: Any,
) -> Report:
    """Check by calls that an op keeps its promises, and return a report.

    Of a plain function, given an example, whether it can be compiled and differentiated as it is: *purity*, *writes*
    (into which arguments), *numbers* (whether one leaves the record, which `pyop.trace` refuses), *compiled* (the same
    bits), *globals* (which of them a trace freezes) and *gradient*.

    contract
        It takes the example and returns what it declares.
    purity
        A second call on the same arguments returns the same bits, and leaves the arguments as they were.
    aliasing
        What one call has returned is not the memory that another call writes to.
    graph
        As a node of a compiled graph it returns the same as when it is called.
    gradient
        Reverse mode, and forward mode, agree with central differences along random directions.
    pickling
        It survives ``pickle``, as it must for other processes.

    Parameters
    ----------
    op : Op or callable
    *example : array_like
        Arguments to call it with. Default: random arrays as the op declares them, named sizes 3, 4, 5 and so on.
    seed : int
        Of the random directions, and of default arguments.
    rtol : float
        How far derivatives may be from differences, relative to their size.
    progress : bool or callable
        True for a bar in a terminal, by rich; or a function of how many promises were looked at, and of how many.
    **statics : object
        Static arguments of the op.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        Something that is not an op, or no example for an op that does not declare its inputs.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.op("float64[n] -> float64[n]")
    ... def double(x):
    ...     return 2 * x
    >>> @double.vjp
    ... def _(ct, x):
    ...     return 3 * ct
    >>> report = pyop.check(double, np.ones(2))
    >>> [finding.what for finding in report.findings if finding.verdict == "FAIL"]
    ['gradient', 'pickling']
    """
    if not isinstance(op, Op) and not (callable(op) and example and not statics):
        raise TypeError(
            f"pyop.check takes an op, got {type(op).__name__} {op!r:.80}: decorate it with @pyop.op, or give an "
            "example of its arguments to have a plain function checked"
        )
    rng = np.random.default_rng(seed)
    arguments = tuple(example) if example or not isinstance(op, Op) else example_of(op, rng)
    arguments = tuple([map_leaves(_as_array, argument) for argument in arguments])
    findings: list[Finding] = []

    def look(what: str, run: Callable[[], str | None]) -> bool:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                text = run()
            except _Failed as failure:
                findings.append(Finding(what, "FAIL", str(failure)))
                return False
            except Exception as error:
                findings.append(Finding(what, "FAIL", f"{type(error).__name__}: {error}"))
                return False
        findings.append(
            Finding(what, "pass" if what in _REMARKS else "skipped", text) if text else Finding(what, "pass")
        )
        return True

    name = op.name if isinstance(op, Op) else getattr(op, "__qualname__", repr(op))
    with progress_of(progress, f"check {name}") as told:
        if not isinstance(op, Op):
            from .commands.plain import PlainChecks

            plain = PlainChecks(op, arguments, _Failed)
            for k, what in enumerate(plain.WHAT):
                told(k, len(plain.WHAT))
                if not look(what, getattr(plain, what)) and what == "purity":
                    break
            told(len(plain.WHAT), len(plain.WHAT))
            return Report(name, tuple(findings), "function")
        checked = _Checks(op, arguments, statics, rng, rtol)
        promises = ("contract", "purity", "aliasing", "graph", "gradient", "pickling")
        for k, what in enumerate(promises):
            told(k, len(promises))
            if what in ("contract", "pickling") or findings[0].verdict != "FAIL":
                look(what, getattr(checked, what))
        told(len(promises), len(promises))
    return Report(name, tuple(findings))


def _as_array(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else np.asarray(x)


def _bits(x: Any) -> list[Any]:
    return [(a.dtype.str, a.shape, a.tolist() if a.dtype.hasobject else a.tobytes()) for a in _leaves(x)]


def _leaves(x: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in flatten(x)[0]]


class _Checks:
    """Run the checks of one op on one example, and keep what the first call returned."""

    def __init__(
        self, op: Op, arguments: tuple[Any, ...], statics: dict[str, Any], rng: np.random.Generator, rtol: float
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.statics = statics
        self.rng = rng
        self.rtol = rtol
        self.writes = {k for k in range(64) if op.contract.mutates >> k & 1}
        self.repeats = not op.stateful  # whether a call may be held against the first one
        self.first: Any = None
        self.first_bits: list[Any] = []

    def fresh(self) -> tuple[Any, ...]:
        """Return copies of the arguments, in memory of their own."""
        return tuple([map_leaves(np.copy, argument) for argument in self.arguments])

    def call(self) -> tuple[Any, tuple[Any, ...]]:
        arguments = self.fresh()
        return self.op(*arguments, **self.statics), arguments

    def contract(self) -> str | None:
        self.first, arguments = self.call()
        self.first_bits = _bits(self.first)
        self._unchanged(arguments)
        return None if self.op.spec.outputs is not None else "the op declares no outputs, so there is nothing to check"

    def _unchanged(self, arguments: tuple[Any, ...]) -> None:
        for k, (now, before) in enumerate(zip(arguments, self.arguments, strict=True)):
            if k not in self.writes and _bits(now) != _bits(before):
                raise _Failed(f"the call has changed argument {k}, which is not among mutates=")

    def purity(self) -> str | None:
        if self.op.stateful:
            return "the op is declared stateful"
        again, arguments = self.call()
        self._unchanged(arguments)
        for k, (a, b) in enumerate(zip(self.first_bits, _bits(again), strict=True)):
            if a != b:
                self.repeats = False
                raise _Failed(f"two calls on the same arguments differ in result {k}: declare the op stateful=True")
        return None

    def aliasing(self) -> str | None:
        again, _ = self.call()
        for k, (a, b) in enumerate(zip(_leaves(self.first), _leaves(again), strict=True)):
            if a.size and np.may_share_memory(a, b):
                raise _Failed(f"two calls have returned the same memory as result {k}: return a copy of what is kept")
        if self.repeats and _bits(self.first) != self.first_bits:
            raise _Failed("a second call has changed what the first one returned: return a copy of what is kept")
        return None

    def graph(self) -> str | None:
        from .tracing.trace import trace

        if self.writes:
            return "the op writes into its arguments"
        specs = [map_leaves(Spec.of, argument) for argument in self.arguments]
        plan = trace(lambda *xs: self.op(*xs, **self.statics), *specs).compile()
        result = plan(*flatten(self.fresh())[0])
        if self.repeats and _bits(result) != self.first_bits:
            raise _Failed("the op as a node of a graph returned another result than the op itself")
        return None

    # --- derivatives

    def gradient(self) -> str | None:
        from .gradients.table import lookup

        if self.op.contract.gradient is None or lookup(self.op) is None:
            return "the op has no gradient rule"
        if not self.repeats:
            return "two calls differ"
        gradient = self.op.contract.gradient
        leaves, structure = flatten(self.arguments)
        which = [k for k, x in enumerate(leaves) if x.dtype.kind in "fc"]
        if not which or not any(y.dtype.kind in "fc" for y in _leaves(self.first)):
            return "no argument, or no result, has real or complex numbers"

        def f(*xs: Any) -> list[Any]:
            full = list(leaves)
            for k, x in zip(which, xs, strict=True):
                full[k] = x
            result = self.op(*structure.unflatten(full), **self.statics)
            return [y for y in flatten(result)[0] if np.result_type(y).kind in "fc"]

        points = [leaves[k] for k in which]
        # Single elements as well, where there are few: a direction of all of them may hide the error of one.
        for tangents in self._directions(points):
            self._compare(f, points, tangents, gradient)
        return None

    def _directions(self, points: list[Any]) -> Iterator[list[Any]]:
        for _ in range(3):
            yield [self._noise(x) for x in points]
        for k, x in enumerate(points):
            if x.size > 20:
                continue
            for index in np.ndindex(x.shape):
                for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
                    tangents = [np.zeros_like(p) for p in points]
                    tangents[k][index] = unit
                    yield tangents

    def _noise(self, x: Any) -> Any:
        noise = self.rng.standard_normal(x.shape)
        return np.asarray(noise + 1j * self.rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise, x.dtype)

    def _compare(self, f: Callable[..., Any], points: list[Any], tangents: list[Any], gradient: Any) -> None:
        from .gradients.table import NoRule
        from .transforms.transforms import jvp, vjp

        step = STEP if all(x.dtype.itemsize >= 8 for x in points) else 1e-3
        up = f(*[np.asarray(x + step * t, x.dtype) for x, t in zip(points, tangents, strict=True)])
        down = f(*[np.asarray(x - step * t, x.dtype) for x, t in zip(points, tangents, strict=True)])
        slopes = [(a - b) / (2 * step) for a, b in zip(up, down, strict=True)]
        values, pullback = vjp(f, *points)
        cts = [self._noise(y) for y in values]
        pulled = pullback(cts)
        expected = _inner(cts, slopes)
        product = _inner(pulled, tangents)
        scale = max(abs(expected), sum(float(np.sum(np.abs(np.conj(c) * s))) for c, s in zip(cts, slopes, strict=True)))
        rtol = self.rtol if step == STEP else max(self.rtol, 1e-2)
        if not abs(product - expected) <= rtol * max(scale, 1.0):
            raise _Failed(
                f"reverse mode does not agree with central differences: along one direction {product:.8g}, and by "
                f"differences {expected:.8g}{_where(tangents)}"
            )
        if gradient.jvp_fn is None and not gradient.jacs and gradient.fallback is None:
            return
        try:
            _, pushed = jvp(f, tuple(points), tuple(tangents))
        except NoRule:
            return
        for k, (t, slope) in enumerate(zip(pushed, slopes, strict=True)):
            if not np.allclose(t, slope, rtol=rtol, atol=rtol * max(1.0, float(np.max(np.abs(slope), initial=0.0)))):
                raise _Failed(
                    f"forward mode does not agree with central differences in result {k}: {t!s:.60}, and by "
                    f"differences {slope!s:.60}{_where(tangents)}"
                )

    def pickling(self) -> str | None:
        try:
            data = pickle.dumps(self.op)
        except Exception as error:
            raise _Failed(
                f"{error}: an op is pickled by its name, so define it at the top of a module, or of a notebook's cell "
                "(plan.map, Dask and Ray send it by value, with cloudpickle)"
            ) from error
        again = pickle.loads(data)
        if self.first is not None and self.repeats:
            result = again(*self.fresh(), **self.statics)
            if _bits(result) != self.first_bits:
                raise _Failed("the unpickled op returns another result")
        return None


def _inner(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return sum(float(np.real(np.vdot(x, y))) for x, y in zip(xs, ys, strict=True))


def _where(tangents: list[Any]) -> str:
    """Return the text that names the element a direction points to; empty if it points to several."""
    places = [(k, np.argwhere(t)) for k, t in enumerate(tangents)]
    elements = [(k, tuple(map(int, index))) for k, indices in places for index in indices]
    return f" (element {elements[0][1]} of differentiable argument {elements[0][0]})" if len(elements) == 1 else ""


# --- examples


def example_of(op: Op, rng: np.random.Generator) -> tuple[Any, ...]:
    """Return random arguments as an op declares them. TypeError if it declares none, or a dtype that is not numeric.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.checking import example_of
    >>> op = pyop.op(np.multiply, "float64[n,m], float64[m] -> float64[n,m]")
    >>> [x.shape for x in example_of(op, np.random.default_rng(0))]
    [(3, 4), (4,)]
    """
    inputs = op.spec.inputs
    if inputs is None:
        raise TypeError(f"op {op.name!r} does not declare its inputs: give check an example")
    leaves, structure = flatten(tuple(inputs))
    names: dict[str, int | Dim] = {}
    for spec in leaves:
        for size in spec.shape or ():
            for name in sorted(size.names) if isinstance(size, Dim) else ():
                names.setdefault(name, SIZES[len(names) % len(SIZES)])
    return tuple(structure.unflatten([_array_of(spec, names, rng, op) for spec in leaves]))


def _array_of(spec: Spec, names: dict[str, int | Dim], rng: np.random.Generator, op: Op) -> Any:
    dtype = spec.dtype if isinstance(spec.dtype, np.dtype) else np.dtype(np.float64)
    shape = []
    for size in spec.shape if spec.shape is not None else (3,):
        if size is Ellipsis:
            continue
        number = 3 if size is None else size.evaluate(names) if isinstance(size, Dim) else size
        if not isinstance(number, int) or number < 0:
            raise TypeError(f"op {op.name!r} declares {spec}: give check an example")
        shape.append(number)
    if dtype.kind in "fc":
        numbers = rng.uniform(0.5, 1.5, shape)
        return np.asarray(numbers + 1j * rng.uniform(0.5, 1.5, shape) if dtype.kind == "c" else numbers, dtype)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0, 3, shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    raise TypeError(f"op {op.name!r} takes {spec}, for which there is no default example: give check one")

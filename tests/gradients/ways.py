"""One call with a gradient, differentiated in every way there is, and held against central differences.

A `Call` is a `Case` seen as a function of some of its arrays: of each alone, with lists in the place of arrays, with
other dtypes. `disagreements` says where a way gives something else than the differences do.
"""

import copy
import warnings
from collections.abc import Iterator

import numpy as np

import pyop
from pyop import NoRule
from pyop._tree import flatten
from pyop.gradients import table

STEPS = {8: 1e-6, 4: 2e-3}
rng = np.random.default_rng(5)


def is_differentiable(x):
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def like(x):
    noise = rng.standard_normal(x.shape)
    return (noise + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else noise).astype(x.dtype)


def as_list(x):
    """The same array, as a list of what iterating over it gives."""
    return [x[k] for k in range(x.shape[0])]


class Call:
    """A call as a function of the leaves `which`; each of `listed` goes in as a list."""

    def __init__(self, func, args, kwargs, which=None, listed=()):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.leaves = table.leaves(args, kwargs)
        self.all = [k for k, leaf in enumerate(self.leaves) if is_differentiable(leaf)]
        self.which = self.all if which is None else which
        self.listed = frozenset(listed)
        self.arrays = [self.leaves[k] for k in self.which]
        self.tangents = [like(x) for x in self.arrays]

    def __call__(self, *arrays):
        new = dict(zip(self.which, arrays, strict=True))
        for k in self.listed:
            new[k] = as_list(new.get(k, self.leaves[k]))
        args, kwargs = table.replaced(self.args, self.kwargs, new)
        results = flatten(self.func(*args, **kwargs))[0]
        known = [y.spec if isinstance(y, pyop.Value) else y for y in results]  # of some the dtype is not, in graphs
        dtypes = [getattr(x, "dtype", None) for x in known]
        return [y for y, dtype in zip(results, dtypes, strict=True) if dtype is None or dtype.kind in "fc"]

    def parts(self):
        return self.func, self.args, self.kwargs

    def moved(self, step):
        return [(x + step * t).astype(x.dtype) for x, t in zip(self.arrays, self.tangents, strict=True)]

    def slope(self):
        size = min([x.real.dtype.itemsize for x in self.arrays], default=8)
        step = STEPS.get(size, 1e-6)
        pairs = zip(self(*self.moved(step)), self(*self.moved(-step)), strict=True)
        return [(np.asarray(high) - low) / (2 * step) for high, low in pairs]


def inner(xs, ys):
    return sum(float(np.real(np.vdot(x, y))) for x, y in zip(xs, ys, strict=True))


def derivatives(call: Call, cts) -> Iterator[tuple[str, object]]:
    """The ways, each a function that gives cotangents of the arguments, or tangents of the results."""
    arrays, tangents = tuple(call.arrays), tuple(call.tangents)
    yield "eager reverse", lambda: pyop.vjp(call, *arrays)[1](cts)
    yield "eager forward", lambda: pyop.jvp(call, arrays, tangents)[1]
    yield "compiled reverse", lambda: pyop.compile(lambda *xs: pyop.vjp(call, *xs)[1](cts))(*arrays)
    yield "compiled forward", lambda: pyop.compile(lambda *xs: pyop.jvp(call, xs, tangents)[1])(*arrays)


def disagreements(call: Call, tolerance=1e-6, refused=()):
    """What is wrong, one text a way; `refused` takes the refusals."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        before = copy.deepcopy(call.arrays)
        expected = [np.asarray(y) for y in call(*call.arrays)]
        slope = call.slope()
        cts = [like(y) for y in expected]
        along = inner(cts, slope)
        scale = max(1.0, abs(along), *(float(np.max(np.abs(y), initial=0.0)) for y in slope))
        for name, way in derivatives(call, cts):
            try:
                found = way()
            except TypeError as error:
                if is_refusal(error):
                    if isinstance(refused, list):
                        refused.append((name, str(error)))
                    continue
                yield f"{name}: {type(error).__name__}: {error}"
                continue
            except Exception as error:
                yield f"{name}: {type(error).__name__}: {error}"
                continue
            if name.endswith("reverse"):
                shapes = [(np.shape(p), p.dtype) for p in found]
                if shapes != [(x.shape, x.dtype) for x in call.arrays]:
                    yield f"{name}: {shapes}"
                    continue
                got = inner(found, call.tangents)
                if not abs(got - along) <= tolerance * scale:
                    yield f"{name}: {got} where differences have {along}"
            else:
                for part, want in zip(found, slope, strict=True):
                    if np.shape(part) != np.shape(want) or not np.allclose(
                        part, want, rtol=tolerance, atol=tolerance * scale
                    ):
                        yield f"{name}: {part} where differences have {want}"
                        break
        if any(not np.array_equal(x, y, equal_nan=True) for x, y in zip(before, call.arrays, strict=True)):
            yield "an argument has changed"


def is_refusal(error) -> bool:
    """Whether an error says what to do instead."""
    text = str(error)
    if isinstance(error, NoRule):
        return any(word in text for word in ("defvjp", "declare", "use ", "pass ", "yourself", "differentiate by"))
    return "np.stack" in text or "stop_gradient" in text or "t.detach()" in text

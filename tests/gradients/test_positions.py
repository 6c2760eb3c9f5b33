"""Every rule by each of its arguments alone, with lists in the place of arrays, complex numbers and single precision:
eager and compiled, reverse and forward, against central differences."""

import warnings

import numpy as np
import pytest

from pyop.gradients import table

from .cases import cases
from .ways import Call, disagreements, is_differentiable, rng

# Differences in single precision do not see past the corners of these, and the pole of tan is near.
ROUGH = (np.sort, np.partition, np.median, np.percentile, np.quantile, np.tan)
# Only its first argument takes part in NumPy's protocol, so NumPy writes the second into an array of its own.
WRITES = (np.full_like,)


def alone(case):
    base = Call(case.func, case.args, case.kwargs)
    for k in base.all if len(base.all) > 1 and case.func not in WRITES else ():
        yield f"by leaf {k}", Call(case.func, case.args, case.kwargs, [k])


def in_lists(case):
    base = Call(case.func, case.args, case.kwargs)
    for k, x in enumerate(base.leaves):
        if not isinstance(x, np.ndarray) or x.ndim == 0 or x.size == 0 or case.func in WRITES:
            continue
        others = [j for j in base.all if j != k]
        if others:
            yield f"leaf {k} is a list", Call(case.func, case.args, case.kwargs, base.all, [k])
            yield f"leaf {k} is a list of numbers", Call(case.func, case.args, case.kwargs, others, [k])


def of_complex_numbers(case):
    base = Call(case.func, case.args, case.kwargs)
    real = [k for k in base.all if base.leaves[k].dtype.kind == "f"]
    for chosen in [real, *([k] for k in real if len(real) > 1)]:
        new = {k: base.leaves[k] + 1j * rng.standard_normal(base.leaves[k].shape) for k in chosen}
        yield f"complex in {chosen}", Call(case.func, *table.replaced(case.args, case.kwargs, new))


def in_single_precision(case):
    leaves = table.leaves(case.args, case.kwargs)
    new = {k: x.astype("F" if x.dtype.kind == "c" else "f") for k, x in enumerate(leaves) if is_differentiable(x)}
    if case.func not in ROUGH and case.kwargs.get("ord") not in (np.inf, -np.inf):
        yield "single precision", Call(case.func, *table.replaced(case.args, case.kwargs, new))


def whole(case):
    if case.func is not np.tan:
        yield "all arguments", Call(case.func, case.args, case.kwargs)


def works(call):
    """Whether NumPy takes this call."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            call(*call.arrays)
    except Exception:
        return False
    return bool(call.which)


VARIANTS = [whole, alone, in_lists, of_complex_numbers, in_single_precision]


@pytest.mark.parametrize("variants", VARIANTS)
def test_every_way_says_what_differences_say(variants):
    check(variants, cases if variants is alone else cases[::5])


@pytest.mark.campaign
@pytest.mark.parametrize("variants", VARIANTS)
def test_every_way_says_what_differences_say_campaign(variants):
    check(variants, cases)


def check(variants, chosen):
    tolerance = 3e-2 if variants is in_single_precision else 1e-6
    wrong, tried = [], 0
    for case in chosen:
        for name, call in variants(case):
            if works(call):
                tried += 1
                wrong += [f"{case.id}, {name}: {text:.300}" for text in disagreements(call, tolerance)]
    assert tried > len(chosen) / 3
    assert not wrong, "\n".join(wrong)

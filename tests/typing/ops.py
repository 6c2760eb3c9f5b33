"""Declaring and calling ops, as a user writes it; see public_api.py."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import pyop

Array = npt.NDArray[np.float64]


@pyop.op
def plain(x: Array) -> Array:
    return x


@pyop.op(outputs="float64[n]", inputs=("float64[n]",), name="scaled", stateful=True)
def scaled(x: Array, *, factor: float = 2.0) -> Array:
    return x * factor


@pyop.op("float64[n] -> float64[n]", mutates="x")
def in_place(x: Array) -> Array:
    x += 1
    return x


@pyop.op
def pairs(x: Array) -> Array:
    return np.stack([x[:-1], x[1:]], axis=1)


@pairs.abstract
def pairs_specs(x: pyop.Spec) -> pyop.Spec:
    return pyop.Spec(x.dtype, (None, 2))


class Model:
    @pyop.op("float64[n] -> float64[n]")
    def apply(self, x: Array) -> Array:
        return x


for declared in (plain, scaled, in_place, pairs, Model().apply, pyop.op(np.sin), pyop.op(lambda x: x, "(n)->(n)")):
    one: pyop.Op = declared
    one(np.zeros(3))
assert_type(scaled.name, str)
assert_type(scaled.stateful, bool)
assert_type(scaled.spec, pyop.Signature)
assert_type(pairs_specs(pyop.Spec.parse("float64[n]")), pyop.Spec)  # a rule stays the function it was
number: float = float(scaled(np.zeros(3), factor=3.0)[0])
results: Array = plain(np.zeros(1))

try:
    scaled(np.zeros(3, "f4"))
except pyop.InputError as error:
    both: TypeError | ValueError = error
except (pyop.OutputError, pyop.GraphError) as error:
    base: pyop.PyopError = error

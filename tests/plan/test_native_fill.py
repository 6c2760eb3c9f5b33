"""Arrays like another one, filled with a number, are native steps."""

import numpy as np
import pytest
from native_checks import check

FILLS = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "zeros of a dtype": lambda x: np.zeros_like(x, "i2"),
    "ones of a dtype": lambda x: np.ones_like(x, dtype=np.complex64),
    "full": lambda x: np.full_like(x, 3),
    "full of a float": lambda x: np.full_like(x, 0.1, dtype="f4"),
    "full of nan": lambda x: np.full_like(x, fill_value=np.nan),
    "full of a complex": lambda x: np.full_like(x, 1 + 2j, dtype="c16"),
    "full of what does not fit": lambda x: np.full_like(x, 300, dtype="i1"),
    "full of an array": lambda x: np.full_like(x, x[..., :1]) if x.ndim else x,
    "in an expression": lambda x: np.zeros_like(x) + x,
    "in another shape": lambda x: np.zeros_like(x, shape=(2, 3)),
    "in another order": lambda x: np.ones_like(x, order="F"),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?", "c8"])
@pytest.mark.parametrize("name", FILLS)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_fill(name, dtype):
    f = FILLS[name]
    x = np.arange(12).astype(dtype)
    for each in (x, x.reshape(3, 4), x.reshape(3, 4).T, x[::2], x[:0], x[0:1].reshape(())):
        plan = check(f, each)
        if plan is not None and name.partition(" ")[0] in ("zeros", "ones"):
            assert plan.report()["native"] == 1
    large = np.ones(70_001, dtype)
    check(f, large)
    check(f, large[1:].reshape(2, -1))


def test_the_result_is_fresh():
    plan = check(np.zeros_like, np.ones(3))
    first = plan(np.ones(3))
    first[:] = 5
    assert plan(np.ones(3)).tolist() == [0, 0, 0]
    assert first.tolist() == [5, 5, 5]

"""The text of what stands for an array may be shown, by every way of showing it, and decides nothing."""

import decimal
import json
import logging
import pprint
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import pyop

from .compare import runs_itself

LOG = logging.getLogger("tests.texts")
X = np.array([1.0, np.nan])

WAYS = {
    "compile": lambda f: lambda x: pyop.compile(f)(x),
    "trace": lambda f: lambda x: pyop.trace(f, "float64[2]").compile()(x),
    "grad": lambda f: lambda x: pyop.vjp(f, x)[0],
    "jvp": lambda f: lambda x: pyop.jvp(f, (x,), (x,))[0],
    "vmap": lambda f: lambda x: pyop.vmap(f)(np.stack([x, x]))[0],
}


@dataclass
class Pair:
    a: object
    b: object = 2


class Model:
    def __init__(self, w):
        self.w = w

    def __repr__(self):
        return f"Model({self.w})"


def unused(x):
    return f"checked {x.shape}"


SHOWN = {
    "print": lambda x: print(x, str(x), repr(x), f"x = {x}", f"{x!r} {x.shape}", "x = %s" % x, "x = " + str(x)),  # noqa: UP031
    "joined": lambda x: print(", ".join(map(str, [x, x])), "{} {!r}".format(x, x)),  # noqa: UP032
    "containers": lambda x: print([x], {"x": x}, f"{(x, x)}"),
    "objects": lambda x: print(Pair(x), Model(x), f"of {Model(x)!r}"),
    "a choice in it": lambda x: print(f"x = {x} {'long' if len(x) > 3 else 'short'}", end="\n"),
    "logged": lambda x: (LOG.info("x = %s", x), LOG.warning(f"x = {x}"))[2:],
    "warned": lambda x: warnings.warn(f"x = {x}", stacklevel=2),
    "pretty": lambda x: pprint.pprint({"x": x}),
    "its form": lambda x: print(unused(x)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SHOWN)
def test_it_may_be_shown(name, way):
    def f(x):
        SHOWN[name](x)
        return x * 2.0

    assert np.array_equal(WAYS[way](f)(X), X * 2, equal_nan=True)


def raised(x):
    if x.ndim == 1:
        raise ValueError(f"not {x}, but two dimensions")
    return x


def raised_later(x):
    message = f"{x} and"
    if len(x):
        message = "other " + message
        raise ValueError(message)
    return x


def asserted(x):
    assert x.ndim == 2, f"{x} has {x.ndim}"
    return x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [raised, raised_later, asserted])
def test_it_may_be_the_message_of_an_error(f, way):
    with pytest.raises(ValueError if f is not asserted else AssertionError):
        WAYS[way](f)(X)


def test_a_message_that_nothing_is_wrong_with():
    def f(x):
        message = f"bad: {x}"
        if x.ndim == 2:
            raise ValueError(message)
        print(message)
        return x * 2.0

    for way in WAYS.values():
        assert np.array_equal(way(f)(X), X * 2, equal_nan=True)


def decided(x):
    return x * 2.0 if "nan" in f"x = {x}" else x * 3.0


def decided_by_a_variable(x):
    text = f"x = {x}"
    print(text)
    return x * 2.0 if "nan" in text else x


def caught(x):
    try:
        return x * float(f"{x[0]}")
    except (ValueError, TypeError):
        return x


GONE_BY = {
    "in": decided,
    "a variable": decided_by_a_variable,
    "a caught error": caught,
    "an element": lambda x: x * 2.0 if str(x[0]) == "1.0" else x,
    "its length": lambda x: x * len(str(x)),
    "a number": lambda x: x * float(str(x[0])),
    "a number in a text": lambda x: x * float(" %s " % x[0]),  # noqa: UP031
    "a format": lambda x: x * float("{}".format(x[0])),  # noqa: UP032
    "joined": lambda x: x * 2.0 if "1.0" in ",".join(map(str, x)) else x,
    "joined later": lambda x: x * 2.0 if "1.0" in ",".join([str(v) for v in x]) else x,
    "a list of it": lambda x: x * 2.0 if "nan" in str([x]) else x,
    "an object": lambda x: x * 2.0 if "nan" in f"{Model(x)}" else x,
    "a dataclass": lambda x: x * 2.0 if "nan" in repr(Pair(x)) else x,
    "a pattern": lambda x: x * 2.0 if re.search("nan", str(x)) else x,
    "a key": lambda x: x * {"1.0": 2.0}.get(str(x[0]), 3.0),
    "a decimal": lambda x: x * float(decimal.Decimal(str(x[0]))),
    "json": lambda x: x * json.loads(str(x[0])),
    "eval": lambda x: x * eval(repr(x[0]), {"np": np}),
    "pretty": lambda x: x * len(pprint.pformat(x)),
    "kept": lambda x: (lambda seen: seen.append(f"{x}") or (x * 2.0 if "nan" in seen[0] else x))([]),
    "returned": lambda x: x * len((lambda: f"x = {x}")()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GONE_BY)
def test_it_decides_nothing(name, way):
    said = r"the text of .* at .*test_texts.py.*decide by values"
    if way == "compile":
        runs_itself(GONE_BY[name], X, match=said)
        return
    with pytest.raises(TypeError, match=said):
        WAYS[way](GONE_BY[name])(X)


def test_the_text_of_a_tensor_of_ones_own_is_a_text():
    x = pyop.Tensor(np.ones(2), requires_grad=True)
    assert "grad_fn" in f"{x * 2}"
    assert len(repr(x)) == len("Tensor([1., 1.], requires_grad=True)")

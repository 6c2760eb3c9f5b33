"""Expressions of every day: each against NumPy, bit for bit, and how many of their plans call no Python."""

import numpy as np
import pytest
from native_checks import assert_same_array, python_calls

import pyop
from benchmarks.idioms import EXPRESSIONS, arguments, function_of, inputs

GIVEN = inputs(200)
AT_LEAST = 140


def leaves(result):
    return [x for item in result for x in leaves(item)] if isinstance(result, (tuple, list)) else [result]


def compiled(expression):
    named = arguments(expression, GIVEN)
    function = function_of(expression, list(named))
    return pyop.compile(function), function, tuple(named.values())


def test_there_are_155():
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS) == 155


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_numpys_bits(expression):
    plan, function, given = compiled(expression)
    want = function(*given)
    for _ in range(2):
        got = plan(*given)
        assert type(got) is type(want) or not isinstance(want, tuple | list)
        for a, b in zip(leaves(got), leaves(want), strict=True):
            assert_same_array(np.asarray(a), np.asarray(b))


def test_most_call_no_python():
    native, silent = 0, 0
    for expression in EXPRESSIONS:
        function, _, given = compiled(expression)
        function(*given)
        plan = function.plan_for(*given)
        if "python" in [node.fate for node in plan.explain().nodes]:
            continue
        native += 1
        # A result that is a named tuple is one that Python makes.
        silent += set(python_calls(plan, *given)) <= {"_make"}
    assert native >= AT_LEAST
    assert silent >= AT_LEAST - 4  # all but those whose arrays lie in an order of their own

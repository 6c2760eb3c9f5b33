"""Random programs in every kind of plan; and that the generator and the shrinking do what they are for."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import pyop

from . import program as programs
from .arrays import DTYPES, LAYOUTS
from .campaign import check
from .growth import random_program


# Shrinking is our own: it cuts lines, where Hypothesis would only look for a smaller seed.
@settings(
    max_examples=2500,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**48))
def test_random_programs(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_in_every_way(seed: int) -> None:
    check(seed, every=True)


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(20))
def test_random_programs_campaign(block: int) -> None:
    for seed in range(block * 5000, (block + 1) * 5000):
        check(seed, every=seed % 10 == 0)


def test_the_programs_are_of_all_kinds() -> None:
    made = [random_program(seed)[:2] for seed in range(1500)]
    text = "\n".join(line.text for program, _ in made for line in program.lines)
    assert len(set(re.findall(r"np\.[a-z_.]*[a-z]", text))) > 100
    assert all(f"{sign} $" in text for sign in ("+", "-", "*", "/", "//", "%", "**", "<", "==", "&", "@"))
    values = [value for _, reference in made for value in reference.values]
    assert {np.dtype(code) for code in DTYPES} <= {value.dtype for value in values}
    assert {0, 1, 2, 3, 4} <= {value.ndim for value in values}
    assert any(value.size == 0 for value in values)
    arrays = [array for program, _ in made for array in program.arrays]
    assert {array.layout for array in arrays} == set(LAYOUTS)
    assert any(array.constant for array in arrays)
    assert sum(bool(said) for _, reference in made for said in reference.said) > 100


def test_a_mistake_is_found_and_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = pyop.op(lambda x: x.copy() if x.dtype != np.float64 or x.ndim < 2 else x * 2, like="x")
    monkeypatch.setitem(programs._NAMES[False], "opaque", wrong)
    with pytest.raises(AssertionError) as caught:
        for seed in range(10_000):
            check(seed)
    text = str(caught.value)
    lines = re.search(r"def f\(.*\):\n((    .*\n)*)", text)
    assert lines is not None
    assert len(lines[1].splitlines()) <= 3, text
    assert re.search(r" = opaque\(\w+\)", text)


def test_a_program_can_be_pasted() -> None:
    for seed in range(40):
        program, reference, _ = random_program(seed)
        names: dict[str, list[np.ndarray]] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(program.source(), names)
            except TypeError as error:
                assert "shows the same memory" in str(error)  # noqa: PT017  a write that is refused
                continue
        for got, want, place in zip(names["got"], names["want"], program.outputs, strict=True):
            assert np.asarray(want).dtype == reference.values[place].dtype
            np.testing.assert_array_equal(got, want)

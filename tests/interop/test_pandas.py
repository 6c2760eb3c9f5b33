"""Ops on the columns of data frames."""

from typing import Any

import numpy as np
import pytest

import pyop

pd = pytest.importorskip("pandas")

from pyop.interop.pandas import wrap  # noqa: E402


@pyop.op("float64[n], float64[n] -> float64[n]")
def density(mass: Any, volume: Any) -> Any:
    return mass / volume


def frame() -> Any:
    return pd.DataFrame({"mass": [2.0, 3.0, 4.0], "volume": [1.0, 2.0, 4.0], "kind": list("aba")}, index=[7, 8, 9])


def test_a_result_by_row_has_the_index() -> None:
    got = wrap(density)(frame())
    assert got.index.tolist() == [7, 8, 9]
    assert got.name == "density"
    assert got.tolist() == [2.0, 1.5, 1.0]


def test_what_is_by_row_goes_by_the_declaration() -> None:
    ends = pyop.op(lambda mass: mass[[0, -1, 0]], "float64[n] -> float64[3]")
    assert type(wrap(ends)(frame())) is np.ndarray
    total = pyop.op(lambda mass: mass.sum(), "float64[n] -> float64[]")
    assert wrap(total)(frame()) == 9.0
    undeclared = pyop.op(lambda mass: mass * 1)
    assert type(wrap(undeclared)(frame())) is np.ndarray
    for same in (pyop.op(lambda mass: mass * 2, like="mass"), pyop.op(lambda mass: mass * 2, "()->()", dtype="T")):
        assert wrap(same)(frame()).index.tolist() == [7, 8, 9]


def test_several_results_and_static_arguments() -> None:
    @pyop.op(inputs=("float64[n]",), outputs={"scaled": "float64[n]", "total": "float64[]"})
    def both(mass: Any, *, by: float = 2.0) -> Any:
        return {"scaled": mass * by, "total": mass.sum()}

    got = wrap(both, {"mass": "volume"})(frame(), by=3.0)
    assert got["scaled"].name == "scaled"
    assert got["scaled"].tolist() == [3.0, 6.0, 12.0]
    assert got["total"] == 7.0


def test_groups() -> None:
    got = (
        frame()
        .groupby("kind")[["mass", "volume"]]
        .apply(wrap(pyop.op(lambda mass, volume: mass @ volume, "float64[n], float64[n] -> float64[]")))
    )
    assert got.to_dict() == {"a": 18.0, "b": 6.0}


def test_the_frame_is_not_written() -> None:
    bad = pyop.op(lambda mass: mass.__setitem__(0, 9.0), "float64[n] -> float64[n]")
    data = frame()
    with pytest.raises(ValueError, match="read-only"):
        wrap(bad)(data)
    assert data["mass"].tolist() == [2.0, 3.0, 4.0]


def test_errors() -> None:
    with pytest.raises(
        KeyError, match=r"parameter 'mass' of op 'density' wants the column 'mass', which the frame has not"
    ):
        wrap(density)(frame().rename(columns={"mass": "kg"}))
    twice = pd.concat([frame(), frame()[["mass"]]], axis=1)
    with pytest.raises(KeyError, match="has 2 times"):
        wrap(density)(twice)
    missing = frame().assign(mass=pd.array([1, None, 3], dtype="Int64"))
    with pytest.raises(pyop.InputError, match=r"'mass' \(Int64\) has missing values"):
        wrap(density)(missing)
    with pytest.raises(pyop.InputError, match="mass"):
        wrap(density, {"mass": "kind"})(frame())
    with pytest.raises(TypeError, match="takes a DataFrame, got ndarray"):
        wrap(density)(np.ones(3))
    with pytest.raises(ValueError, match="no parameter of op"):
        wrap(density, {"weight": "mass"})

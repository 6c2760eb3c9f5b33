"""Ops on labelled arrays: labels, dimensions by name, laziness, errors."""

from typing import Any

import numpy as np
import pytest

import pyop

xr = pytest.importorskip("xarray")

from pyop.interop.xarray import wrap  # noqa: E402


@pyop.op("(n),(n)->()", dtype="T")
def dot(a: Any, b: Any) -> Any:
    return np.dot(a, b)


@pyop.op("(n)->(n)", dtype="float64")
def centred(a: Any) -> Any:
    return a - a.mean()


@pyop.op("(3),(3)->(3)", dtype="float64")
def cross(a: Any, b: Any) -> Any:
    return np.cross(a, b)


def wind() -> Any:
    values = np.arange(12.0).reshape(3, 2, 2)
    coords = {"time": [10, 20, 30], "place": ["Ulm", "Bern"]}
    return xr.DataArray(values, dims=("time", "place", "level"), coords=coords, attrs={"unit": "m/s"}, name="wind")


def test_loop_dimensions_broadcast_by_name_and_keep_their_labels() -> None:
    a = wind()
    b = a.isel(level=0).transpose("place", "time")
    got = wrap(dot, {"n": "time"})(a, b)
    assert got.dims == ("place", "level")
    assert got.coords["place"].values.tolist() == ["Ulm", "Bern"]
    assert got.attrs == {"unit": "m/s"}
    np.testing.assert_array_equal(got.values, dot(np.moveaxis(a.values, 0, -1), a.values[:, :, :1].T.swapaxes(0, 1)))


def test_core_dimensions_that_stay_keep_their_labels() -> None:
    got = wrap(centred, {"n": "time"})(wind())
    assert got.dims == ("place", "level", "time")
    assert got.coords["time"].values.tolist() == [10, 20, 30]
    np.testing.assert_array_equal(got.transpose("time", ...).values, wind().values - wind().values.mean(axis=0))


def test_fixed_sizes_datasets_and_other_arrays() -> None:
    a = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("row", "axis"))
    got = wrap(cross, {"3": "axis"})(a, np.array([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(got.values, cross(a.values, np.array([1.0, 0.0, 2.0])))
    data = xr.Dataset({"p": a, "q": 2 * a})
    np.testing.assert_array_equal(
        wrap(centred, {"n": "axis"})(data)["q"].values, 2 * a.values - 2 * a.values.mean(axis=1)[:, None]
    )


def test_arrays_of_dask_are_computed_when_asked_for() -> None:
    pytest.importorskip("dask.array")
    calls = []

    @pyop.op("(n)->()", dtype="float64")
    def seen(a: Any) -> Any:
        calls.append(a.shape)
        return a.sum()

    lazy = wrap(seen, {"n": "time"})(wind().chunk(place=1))
    assert not calls
    assert lazy.dtype == np.float64
    np.testing.assert_array_equal(lazy.compute(scheduler="sync").values, wind().values.sum(axis=0))
    assert calls
    assert set(calls) == {(3,)}
    with pytest.raises(ValueError, match="chunk"):
        wrap(seen, {"n": "time"})(wind().chunk(time=1))
    mixed = xr.Dataset({"p": wind(), "q": wind().astype("f4")}).chunk(place=1)
    with pytest.raises(TypeError, match="variables of the dtypes float32, float64"):
        wrap(dot, {"n": "time"})(mixed, mixed)


def test_errors() -> None:
    a = wind()
    with pytest.raises(
        ValueError, match=r"has the dimensions \('time', 'place', 'level'\), and none 'n'; wrap\(op, dims=\{'n': …\}\)"
    ):
        wrap(dot)(a, a)
    with pytest.raises(ValueError, match="names 'm', which is no core dimension"):
        wrap(dot, {"m": "time"})
    with pytest.raises(ValueError, match="two core dimensions"):
        wrap(pyop.op(lambda a, b: a, "(n),(m)->(n)", dtype="T"), {"n": "time", "m": "time"})
    with pytest.raises(ValueError, match="cannot align"):  # other labels: xarray's own
        wrap(dot, {"n": "time"})(a, a.assign_coords(place=["Ulm", "Rom"]))
    with pytest.raises(pyop.InputError, match="centred"):
        wrap(centred, {"n": "time"})(a.astype("f4"))
    with pytest.raises(TypeError, match="takes 2 arrays"):
        wrap(dot, {"n": "time"})(a)

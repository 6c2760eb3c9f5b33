"""Programs as people write them compile to plans that call no Python, and give NumPy's results."""

import numpy as np
import pytest

import pyop
from benchmarks.numpy_programs import programs

PROGRAMS = {size: programs(size) for size in (3, 30, 1000)}


@pytest.mark.parametrize("name", PROGRAMS[30])
def test_programs(name):
    for found in PROGRAMS.values():
        function, arguments = found[name]
        specs = [pyop.Spec(a.dtype, a.shape) for a in arguments]
        plan = pyop.trace(function, *specs).compile()
        assert "python" not in [node.fate for node in plan.explain().nodes]
        for run in (plan, pyop.compile(function), pyop.trace(function, *specs).compile(optimize=False)):
            got, want = run(*arguments), function(*arguments)
            several = isinstance(want, tuple)
            for a, b in zip(got if several else [got], want if several else [want], strict=True):
                assert (a.dtype, a.shape, np.asarray(a).tobytes()) == (b.dtype, b.shape, np.asarray(b).tobytes())

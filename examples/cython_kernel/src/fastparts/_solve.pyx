# cython: language_level=3, boundscheck=False, wraparound=False
"""A plan of pyop, called in a loop without the GIL: many equations solved at once by Newton's method."""

from cython.parallel cimport prange
from libc.math cimport fabs

from pyop cimport pyop_call, pyop_is_native, pyop_plan, pyop_plan_of

import numpy as np


cdef int solve_one(const pyop_plan *plan, double x, double p, double tolerance, int most, double *root) except -1 nogil:
    cdef double value, slope, step
    cdef const void *inputs[2]
    cdef void *outputs[2]
    inputs[0], inputs[1] = &x, &p
    outputs[0], outputs[1] = &value, &slope
    for _ in range(most):
        pyop_call(plan, inputs, outputs)  # what the plan raises goes on from here
        step = value / slope
        x -= step
        if fabs(step) <= tolerance * (1 + fabs(x)):
            root[0] = x
            return 0
    with gil:
        raise ValueError(f"no root for the parameter {p}: after {most} steps x is {x}, and the last step was {step}")


def newton(object plan, const double[::1] start, const double[::1] parameters, *, double tolerance=1e-14, int most=50):
    """Roots of f(x, p) for each p.

    Parameters
    ----------
    plan : pyop.Plan
        Of ``pyop.value_and_grad(f)``: takes two single float64, gives the value and its derivative by x.
    start, parameters : float64[n]
        Where to begin, and p.
    tolerance : float
        How small the last step must be, relative to 1 + abs(x).
    most : int
        Steps.

    Returns
    -------
    ndarray
        float64[n].

    Raises
    ------
    TypeError
        If the plan takes or gives something else.
    ValueError
        If an equation has no root that is found; besides, whatever the plan raises.
    """
    if start.shape[0] != parameters.shape[0]:
        raise ValueError(f"there are {start.shape[0]} starting points for {parameters.shape[0]} parameters")
    # C finds memory behind its pointers, and nothing else: the signature is what keeps this safe. The plan lives as
    # long as this call, since `plan` does.
    cdef const pyop_plan *at = pyop_plan_of(plan, "float64[], float64[] -> float64[], float64[]")
    roots = np.empty(parameters.shape[0])
    cdef double[::1] found = roots
    cdef Py_ssize_t i
    for i in prange(parameters.shape[0], nogil=True, schedule="static"):
        solve_one(at, start[i], parameters[i], tolerance, most, &found[i])
    return roots


def is_native(object plan):
    """Whether threads run the plan at once: it computes without Python, and takes no lock."""
    return pyop_is_native(pyop_plan_of(plan, NULL))

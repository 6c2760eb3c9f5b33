"""Check gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core import Tensor
from .arrays import to_array
from .derivatives import grad
from .forward import jvp
from .modes import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Report a gradient that disagrees with finite differences, or breaks a rule that gradients keep.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> from pyop.autograd import GradcheckError, gradcheck
    >>> half = pyop.op(lambda x: x / 2, "float64[n] -> float64[n]", name="half")
    >>> _ = half.vjp(lambda ct, x: ct)
    >>> try:
    ...     gradcheck(half, [pyop.Tensor(np.ones(2), requires_grad=True)])
    ... except GradcheckError:
    ...     print("its rule is wrong")
    its rule is wrong
    """


def _outputs(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    """Return the differentiable results of a call."""
    results = func(*inputs)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return [y for y in results if isinstance(y, Tensor) and y.dtype.kind in "fc"]


def _numbers(func: Callable[..., Any], inputs: Sequence[Any], k: int, array: Any) -> list[Any]:
    """Return the results as arrays, with another array for input `k`."""
    changed = [Tensor(x.numpy().copy()) if isinstance(x, Tensor) else x for x in inputs]
    changed[k] = Tensor(array)
    with no_grad():
        return [np.array(y.numpy()) for y in _outputs(func, changed)]


def _steps(array: Any, eps: float) -> Any:
    """Yield the index and the step of each direction: along the real axis, and the imaginary one if there is one."""
    for index in np.ndindex(array.shape):
        for step in (eps, 1j * eps) if array.dtype.kind == "c" else (eps,):
            yield index, step


class _Steps:
    """Count the directions that a check has stepped along, for its progress."""

    def __init__(self, told: Callable[[int, int | None], Any], total: int) -> None:
        self.told, self.done, self.total = told, 0, total
        told(0, total)

    def step(self) -> None:
        self.done += 1
        self.told(self.done, self.total)


def _count(x: Any) -> int:
    """Return the number of real directions of an array."""
    return int(x.size) * (2 if x.dtype.kind == "c" else 1)


def _numeric(func: Callable[..., Any], inputs: Sequence[Any], k: int, eps: float, at: _Steps) -> list[Any]:
    """Return, for each output, the derivatives by input `k`: a row for each real direction of it."""
    base = inputs[k].numpy()
    rows = []
    for index, step in _steps(base, eps):
        up, down = np.array(base), np.array(base)
        up[index] += step
        down[index] -= step
        plus, minus = _numbers(func, inputs, k, up), _numbers(func, inputs, k, down)
        rows.append([(p - m).ravel() / (2 * eps) for p, m in zip(plus, minus, strict=True)])
        at.step()
    return [np.array(column) for column in zip(*rows, strict=True)]


def _directions(y: Any) -> Any:
    """Yield the output gradients that give the whole Jacobian."""
    for index in np.ndindex(y.shape):
        for unit in (1.0, 1j) if y.dtype.kind == "c" else (1.0,):
            seed = np.zeros(y.shape, y.dtype)
            seed[index] = unit
            yield seed


def _real(gradient: Any) -> Any:
    """Return a gradient as real numbers: a complex one by its two parts."""
    flat = np.asarray(gradient).ravel()
    return np.stack([flat.real, flat.imag], axis=1).ravel() if flat.dtype.kind == "c" else flat


def _gradients(y: Tensor, wrt: list[Tensor], seed: Any) -> list[Any]:
    found = grad([y], wrt, [seed], retain_graph=True, allow_unused=True)
    return [np.zeros(x.shape, x.dtype) if g is None else np.array(g.numpy()) for x, g in zip(wrt, found, strict=True)]


def _check_reverse(
    func: Callable[..., Any],
    inputs: Sequence[Any],
    wrt: list[int],
    eps: float,
    atol: float,
    rtol: float,
    nondet: float,
    at: _Steps,
) -> None:
    with enable_grad():
        outputs = _outputs(func, inputs)
    variables = [inputs[k] for k in wrt]
    numeric = [_numeric(func, inputs, k, eps, at) for k in wrt]
    for j, y in enumerate(outputs):
        if not y.requires_grad:
            for n, k in enumerate(wrt):
                if numeric[n] and np.abs(numeric[n][j]).max(initial=0.0) > atol:
                    raise GradcheckError(
                        f"output {j} does not require a gradient, but it changes with input {k} (finite differences)"
                    )
            continue
        seeds = list(_directions(y))
        for seed in seeds:
            first, again = _gradients(y, variables, seed), _gradients(y, variables, seed)
            for a, b in zip(first, again, strict=True):
                if np.abs(a - b).max(initial=0.0) > nondet:
                    raise GradcheckError(
                        f"backward is not reproducible: run twice on output {j}, it gave gradients that differ"
                    )
            at.step()
        rows = [_gradients(y, variables, seed) for seed in seeds]
        for n, k in enumerate(wrt):
            # Row by seed and column by direction of the input: Re(conj(seed) * dy/direction).
            analytic = np.array([_real(row[n]) for row in rows]).reshape(len(seeds), -1)
            jacobian = numeric[n][j] if numeric[n] else np.zeros((0, 0))
            wanted = np.array([[np.real(np.vdot(seed.ravel(), d)) for d in jacobian] for seed in seeds])
            wanted = wanted.reshape(len(seeds), -1)
            if not np.allclose(analytic, wanted, rtol=rtol, atol=atol):
                raise GradcheckError(
                    f"the gradient of output {j} by input {k} does not agree with finite differences:\n"
                    f"by finite differences:\n{wanted}\nby backward:\n{analytic}"
                )
        for g in _gradients(y, variables, np.zeros(y.shape, y.dtype)):
            if np.abs(g).max(initial=0.0) != 0.0:
                raise GradcheckError(f"backward of output {j} does not return zero for a gradient of zero")


def _check_forward(
    func: Callable[..., Any], inputs: Sequence[Any], wrt: list[int], eps: float, atol: float, rtol: float, at: _Steps
) -> None:
    for k in wrt:
        numeric = _numeric(func, inputs, k, eps, at)
        base = inputs[k].numpy()
        for row, (index, step) in enumerate(_steps(base, eps)):
            tangent = np.zeros(base.shape, base.dtype)
            tangent[index] = step / eps

            def along(x: Any, k: int = k) -> Any:
                return tuple(_outputs(func, [*inputs[:k], x, *inputs[k + 1 :]]))

            _, tangents = jvp(along, (inputs[k].detach(),), (tangent,))
            for j, t in enumerate(tangents):
                if not np.allclose(t.numpy().ravel(), numeric[j][row], rtol=rtol, atol=atol):
                    raise GradcheckError(
                        f"the tangent of output {j} along element {index} of input {k} is {t.numpy().ravel()}, and by "
                        f"finite differences {numeric[j][row]}"
                    )
            at.step()


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_forward_ad: bool = False,
    progress: bool | Callable[[int, int | None], Any] = False,
) -> bool:
    """Check the gradients of a function against central differences.

    A gradient must also be the same when it is computed twice, and zero for a zero output gradient.

    Parameters
    ----------
    func : callable
        Of Tensors; returns a Tensor or several.
    inputs : Tensor or sequence
        Those that require a gradient are checked. Use float64: differences of float32 are too coarse.
    eps : float
        Step of the differences.
    atol, rtol : float
        Tolerances, as of ``np.allclose``.
    raise_exception : bool
        Raise, or return False.
    nondet_tol : float
        How much two runs may differ.
    check_forward_ad : bool
        Check `jvp` too.
    progress : bool or callable
        True for a bar in a terminal, by rich; or a function of how many directions were gone along, and of how many.

    Returns
    -------
    bool

    Raises
    ------
    GradcheckError
        A gradient is wrong.
    ValueError
        No input requires a gradient.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array([0.5, 2.0]), requires_grad=True)
    >>> pyop.autograd.gradcheck(lambda x: x * x, (x,))
    True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wrt = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wrt:
        raise ValueError("at least one input has to require a gradient: there is nothing to check")
    from ..machines.progress import progress_of

    with progress_of(progress, "gradcheck") as told:
        try:
            recorded = [y for y in _outputs(func, inputs) if y.requires_grad]
            if not recorded:
                raise GradcheckError("no output requires a gradient: nothing was recorded")
            by_input = sum(_count(inputs[k]) for k in wrt)
            at = _Steps(told, by_input * (3 if check_forward_ad else 1) + sum(map(_count, recorded)))
            _check_reverse(func, inputs, wrt, eps, atol, rtol, nondet_tol, at)
            if check_forward_ad:
                _check_forward(func, inputs, wrt, eps, atol, rtol, at)
        except GradcheckError:
            if raise_exception:
                raise
            return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    progress: bool | Callable[[int, int | None], Any] = False,
) -> bool:
    """Check the gradients of a function's gradients: `gradcheck` of its backward pass.

    Parameters
    ----------
    func, inputs
        As of `gradcheck`.
    grad_outputs : sequence of array_like, optional
        The gradients to begin with. Default: arbitrary ones, the same in every run.
    eps, atol, rtol, raise_exception, nondet_tol, progress
        As of `gradcheck`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.array([0.5, 2.0]), requires_grad=True)
    >>> pyop.autograd.gradgradcheck(lambda x: x * x * x, (x,))
    True
    """
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = [y for y in _outputs(func, inputs) if y.requires_grad]
    if grad_outputs is None:
        random = np.random.default_rng(0)
        grad_outputs = [_arbitrary(random, y) for y in outputs]
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = [grad_outputs]
    seeds = [
        Tensor(np.array(np.asarray(to_array(g)), dtype=y.dtype), requires_grad=True)
        for g, y in zip(grad_outputs, outputs, strict=True)
    ]
    count = len(inputs)

    def gradient(*arguments: Any) -> Any:
        with enable_grad():
            given = [
                x if not isinstance(x, Tensor) or x.requires_grad or not original.requires_grad else _leaf(x)
                for x, original in zip(arguments[:count], inputs, strict=True)
            ]
            wrt = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
            results = [y for y in _outputs(func, given) if y.requires_grad]
            gradients = grad(results, wrt, list(arguments[count:]), create_graph=True, allow_unused=True)
        return tuple(g for g in gradients if g is not None)

    return gradcheck(
        gradient,
        (*inputs, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        progress=progress,
    )


def _leaf(x: Tensor) -> Tensor:
    return Tensor(x.numpy(), requires_grad=True)


def _arbitrary(random: np.random.Generator, y: Tensor) -> Any:
    numbers = random.standard_normal(y.shape)
    return numbers + 1j * random.standard_normal(y.shape) if y.dtype.kind == "c" else numbers

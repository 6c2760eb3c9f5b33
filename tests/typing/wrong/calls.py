"""Calls that both type checkers must refuse, each line with the error that is expected there; never run.

A mark without its error is an error itself: of mypy by `--strict`, of pyright by the line below.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import numpy as np
import numpy.typing as npt

import pyop
from pyop.typing import Context, Pullback, Transformed

Array = npt.NDArray[np.float64]
x = np.ones(3)


@pyop.op
def plain(a: Array) -> Array:
    return a * 2


@pyop.op("float64[n], float64[n] -> float64[n]", name="scaled")
def scaled(a: Array, b: Array, *, factor: float = 2.0) -> Array:
    return a * b * factor


@pyop.compile
def fast(a: Array, b: Array) -> Array:
    return a + b


@pyop.compile(threads=2)
def faster(a: Array) -> Array:
    return a + 1


def loss(a: Array, weight: float = 1.0) -> np.float64:
    return np.float64(np.sum(a * a) * weight)


class Model:
    @pyop.op("float64[n] -> float64[n]")
    def apply(self, a: Array) -> Array:
        return a

    @pyop.compile
    def step(self, a: Array) -> Array:
        return a + 1


# --- arguments of ops
plain("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
plain(x, x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
plain()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
plain(b=x)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
scaled(x, "text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
scaled(x, x, factor="two")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
scaled(x, x, 3.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
Model().apply("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
Model().apply(x, x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]

# --- and of compiled functions
fast(x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
fast(x, 1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
faster("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
faster(x, b=x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
Model().step("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.compile(loss, threads="two")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.op(loss, stateful="no")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.op(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]

# --- and of transformed ones
pyop.grad(loss)("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.grad(loss)(x, weight="one")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.value_and_grad(loss)(x, 1.0, 2.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.vmap(plain)("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.jacobian(plain)(x, x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.hessian(loss)(x, factor=1.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
pyop.jacobian(plain, mode="backward")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.grad(1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
pyop.vjp(loss, x)[1]("text")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
pyop.vjp(loss, x, has_aux=True)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]

# --- results
text: str = plain(x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
number: int = fast(x, x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
pair: tuple[Array, Array] = faster(x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
of_value: str = pyop.value_and_grad(loss)(x)[0]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
of_vmap: str = pyop.vmap(plain)(x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
of_vjp: str = pyop.vjp(loss, x)[0]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
of_jvp: tuple[str, str] = pyop.jvp(loss, (x,), (x,))  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]

# --- annotations
other: pyop.Op[[str], Array] = plain  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
result: pyop.Op[[Array], str] = plain  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
kind: pyop.CompiledFunction[[Array], Array] = fast  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
transformed: Transformed[[str], Array] = pyop.grad(loss)  # type: ignore[arg-type]  # pyright: ignore[reportAssignmentType]
pullback: Pullback[str] = pyop.vjp(loss, x)[1]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


def forward(ctx: Context) -> None:
    ctx.save_for_backward(array=x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ctx.saved_tensors.append(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


names: list[str] = plain.map([x])  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
Model.apply(x)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
plain(x, unknown=1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]

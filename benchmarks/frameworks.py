"""B21, B35: an op wrapped for a framework against a binding of the same function that is written for it by hand."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

import numpy as np

import pyop

from .harness import Harness, Row, Statement


def twice(x: np.ndarray) -> np.ndarray:
    """What all bindings call."""
    return x * 2.0


def back(ct: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient of that, which all bindings are given the argument for."""
    return ct * 2.0


def plus(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same of two arrays."""
    return x + y


def run(harness: Harness) -> list[Row]:
    """A call of three numbers, where a binding is all that it costs."""
    if not importlib.util.find_spec("torch"):
        return [Row(id, "a wrapped op in torch", "≤ 1.3", None, 1.3, detail="needs torch") for id in ("B21", "B35")]
    return of_torch(harness)


def of_torch(harness: Harness) -> list[Row]:
    """`pyop.interop.torch.wrap` against `Library.define` and `impl`."""
    import torch

    from pyop.interop.torch import wrap

    torch.set_num_threads(1)
    op = pyop.op(twice, "float64[n] -> float64[n]")
    op.vjp(back)
    of_two = pyop.op(plus, "float64[n], float64[n] -> float64[n]")
    of_two.vjp(lambda ct, x, y: (ct, ct))
    library, bare, whole, two = by_hand()
    x = torch.arange(3.0, dtype=torch.float64)
    recorded = x.clone().requires_grad_()
    names: dict[str, Any] = {"f": wrap(op), "g": wrap(of_two), "bare": bare, "whole": whole, "two": two}
    names |= {"x": x, "r": recorded, "library": library}
    assert torch.equal(names["f"](x), bare(x))
    assert torch.equal(names["g"](x, x), two(x, x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = harness.compare(
            {
                "wrapped": Statement("f(x)", names),
                "bare": Statement("bare(x)", names),
                "whole": Statement("whole(x)", names),
                "wrapped two": Statement("g(x, x)", names),
                "two": Statement("two(x, x)", names),
                "wrapped, recorded": Statement("f(r)", names),
                "whole, recorded": Statement("whole(r)", names),
                "wrapped, back": Statement("f(r).backward(x)", names),
                "whole, back": Statement("whole(r).backward(x)", names),
            },
            warm=100,  # the first gradient defines the op that computes it
        )
    rows = [
        ("B35", "a wrapped op over define and impl alone (no gradient)", "wrapped", "bare", 1.3),
        ("B35", "the same, of two tensors", "wrapped two", "two", 1.3),
        ("B21", "a wrapped op over define, impl, register_fake and register_autograd", "wrapped", "whole", 1.1),
        ("B21", "the same, recorded for a gradient", "wrapped, recorded", "whole, recorded", 1.1),
        ("B21", "the same, forward and backward", "wrapped, back", "whole, back", 1.1),
    ]
    return [
        Row(id, f"torch: {what}", f"≤ {limit}", times.ratio(key, base), limit,
            detail=f"{times.ns(key) / 1000:.1f} µs, by hand {times.ns(base) / 1000:.1f} µs")
        for id, what, key, base, limit in rows
    ]  # fmt: skip


def by_hand() -> tuple[Any, Any, Any, Any]:
    """The library, and three ops of it: kernels alone, of one and of two tensors, and all that the wrapped one has."""
    import torch

    library = torch.library.Library("pyop_benchmarks", "FRAGMENT")
    space = torch.ops.pyop_benchmarks

    def kernel(x: Any) -> Any:
        return torch.from_numpy(twice(x.numpy()))

    def kernel_of_two(x: Any, y: Any) -> Any:
        return torch.from_numpy(plus(x.numpy(), y.numpy()))

    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    def gradient(ct: Any, x: Any) -> Any:  # as the rule of the wrapped op, which is given x too
        return torch.from_numpy(back(ct.numpy(), x.numpy()))

    for name in ("bare", "whole"):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, kernel, "CPU")
    library.define("pull(Tensor ct, Tensor x) -> Tensor")
    library.impl("pull", gradient, "CPU")
    library.define("two(Tensor x, Tensor y) -> Tensor")
    library.impl("two", kernel_of_two, "CPU")
    pull = space.pull.default
    torch.library.register_fake("pyop_benchmarks::whole", torch.empty_like, lib=library)
    torch.library.register_autograd(
        "pyop_benchmarks::whole", lambda ctx, ct: pull(ct, *ctx.saved_tensors), setup_context=remember, lib=library
    )
    return library, space.bare.default, space.whole.default, space.two.default

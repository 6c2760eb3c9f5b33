"""Bindings of `frameworks_tfpt.energy` as people write them by hand, for `framework_costs.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frameworks_tfpt import energy, slope


def torch_by_hand() -> tuple[Any, Any]:
    """The library, and its op: define and impl, with a fake implementation and a gradient."""
    import torch

    library = torch.library.Library("pyop_costs", "FRAGMENT")
    space = torch.ops.pyop_costs
    library.define("energy(Tensor x) -> Tensor")
    library.define("slope(Tensor ct, Tensor x) -> Tensor")
    library.impl("energy", lambda x: torch.from_numpy(np.asarray(energy(x.numpy()))), "CPU")
    library.impl("slope", lambda ct, x: torch.from_numpy(slope(ct.numpy(), x.numpy())), "CPU")
    pull = space.slope.default
    torch.library.register_fake("pyop_costs::energy", lambda x: x.new_empty(()), lib=library)
    torch.library.register_autograd(
        "pyop_costs::energy",
        lambda ctx, ct: pull(ct, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        lib=library,
    )
    return library, space.energy.default


def jax_by_hand() -> Any:
    """A `pure_callback` with a gradient by another one."""
    import jax

    @jax.custom_vjp
    def f(x: Any) -> Any:
        return jax.pure_callback(lambda x: np.asarray(energy(np.asarray(x))), jax.ShapeDtypeStruct((), np.float64), x)

    def backward(x: Any, ct: Any) -> Any:
        spec = jax.ShapeDtypeStruct(x.shape, np.float64)
        return (jax.pure_callback(lambda ct, x: slope(np.asarray(ct), np.asarray(x)), spec, ct, x),)

    f.defvjp(lambda x: (f(x), x), backward)
    return f


def onnxruntime_sessions(op: Any, nodes: int) -> tuple[Any, Any]:
    """Sessions of so many nodes that read one input: of a registered op, and of one of onnxruntime-extensions."""
    import onnxruntime as ort
    import onnxruntime_extensions as extensions
    from onnx import TensorProto, helper

    from pyop.interop.onnxruntime import register

    def made(name: str, domain: str, options: Any) -> Any:
        outputs = [f"y{k}" for k in range(nodes)]
        calls = [helper.make_node(name, ["x"], [y], domain=domain) for y in outputs]
        x = helper.make_tensor_value_info("x", TensorProto.DOUBLE, ["n"])
        ys = [helper.make_tensor_value_info(y, TensorProto.DOUBLE, None) for y in outputs]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
        model = helper.make_model(helper.make_graph(calls, "g", [x], ys), opset_imports=opsets, ir_version=9)
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # equal nodes stay several
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    global _extension
    if _extension is None:
        double = extensions.PyCustomOpDef.dt_double

        @extensions.onnx_op(op_type="PyopEnergy", inputs=[double], outputs=[double])
        def by_hand(x: Any) -> Any:
            return np.asarray(energy(x))

        _extension = by_hand
    theirs = ort.SessionOptions()
    theirs.register_custom_ops_library(extensions.get_library_path())
    return made(op.name, "pyop", register(op)), made("PyopEnergy", "ai.onnx.contrib", theirs)


_extension: Any = None

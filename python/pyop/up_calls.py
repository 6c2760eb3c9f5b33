"""Install the up-calls: every function and class that the core calls, by its name in csrc/runtime/up_calls.h.

That header describes each and lists the files that call it. A name that only one side has is an error of the import.
Modules that most programs do not need are imported by the first call.
"""

from __future__ import annotations

import os

from . import _core
from ._core import Tensor
from ._tree import TreeDef
from .compiling.statics import static_key
from .declare.dim import Dim
from .declare.rebuild import CallForOne, CallOnTrees, getitem_with_bounds
from .declare.spec import Spec
from .graph.array_protocol import array_function, array_ufunc
from .graph.deciding import PathLeft, RunItself, Taken, quiet_begin, quiet_end, value_decided
from .graph.powers import power_of
from .graph.symbolic_number import Number, OnNumbers, size_number
from .graph.value_methods import getitem
from .interrupts import moment
from .refusals import remedy_of_caller

__all__ = ["ATTRIBUTES", "CALLS", "FILLED_BY", "install"]

# What the core compares objects with, and calls nowhere: the module that defines it says what it is.
FILLED_BY = {
    "opened": "transforms.marker",
    "stopped": "transforms.stop",
    "broadcast_like": "gradients.unbroadcast",
    "reshape_like": "gradients.adjoints",
    "count_along": "gradients.adjoints",
    "put": "gradients.adjoints",
    "store": "gradients.store",
    "performed": "gradients.performed",
    "in_place_call": "graph.in_place",
    "fresh": "gradients.fresh",
    "loop_class": "loops.node",
    "branch_class": "loops.node",
    "recorded_types": "autograd.batched",
    "batched_array": "autograd.batched",
    "batched_scalar": "autograd.batched",
}
# By the module that the first call imports; after a colon the name there, where it is another.
_BY_MODULE = {
    "compiling.disable": "result_into",
    "containers": "lost_nulls",
    "ops.on_device": "device_call",
    "graph.cells": "shown_place",
    "graph.in_place": "value_in_place:in_place",
    "graph.known": "numbers_asked",
    "graph.operands": "is_written_as_operator",
    "graph.unknown": "unknown_attribute",
    "graph.value_refusals": "text_of_store",
    "graph.writes": "value_store_part:store_part value_linked:linked",
    "graph.value_sequence": "value_length:length value_iterate:iterate value_contains:contains",
    "tracing.shown": "shown_text",
    "loops.node": "loop_parts",
    "graph.number_operators": "complex_with_scalar",
    "machine_code.background": "machine_code_wanted:wanted",
    "autograd._support": "apply_general call_forward_tree creation flatten_gradients check_nan set_tangents "
    "any_by_argument check_none_hidden fit_gradient add_tensors add_hook",
    "autograd.in_graphs": "apply_symbolic",
    "autograd.op_calls": "recorded_call:call_op",
    "autograd.recording": "outer spread put_back tensor_operator:operator tensor_power:power tensor_getitem:getitem "
    "tensor_iterate:iterate tensor_array_ufunc:array_ufunc tensor_array_function:array_function record_in_place",
    "autograd.vmap": "apply_batched",
    "autograd.writes": "tensor_setitem:setitem refuse_write",
}

CALLS: dict[str, object] = {
    "package_directory": os.path.join(os.path.dirname(os.path.abspath(__file__)), ""),
    "remedy_of_caller": remedy_of_caller,
    "spec_class": Spec,
    "dim_class": Dim,
    "value_array_ufunc": array_ufunc,
    "value_array_function": array_function,
    "value_getitem": getitem,
    "getitem_with_bounds": getitem_with_bounds,
    "power_of": power_of,
    "number_call": OnNumbers,
    "size_number": size_number,
    "call_for_one": CallForOne,
    "static_key": static_key,
    "number_class": Number,
    "value_decided": value_decided,
    "taken": Taken,
    "path_left": PathLeft,
    "run_itself": RunItself,
    "quiet_begin": quiet_begin,
    "quiet_end": quiet_end,
    "moment": moment,
    **{
        name.partition(":")[0]: (f"{__package__}.{module}", name.rpartition(":")[2])
        for module, names in _BY_MODULE.items()
        for name in names.split()
    },
    **dict.fromkeys(FILLED_BY),
}

# The attributes that C++ reads, and the classes whose instances must have them: a class, or where it is defined.
ATTRIBUTES: dict[str, tuple[type | str, ...]] = {
    "dtype": (Spec,),
    "shape": (Spec,),
    "terms": (Dim,),
    "name": (Dim,),
    "evaluate": (Dim,),
    "infer": ("declare.signature.Signature", "declare.abstract.AbstractRule", "declare.abstract.AndContext"),
    "flatten_up_to": (TreeDef,),
    "unflatten": (TreeDef,),
    "match": (TreeDef,),
    "bind": (CallOnTrees,),
    "saving": ("transforms.op_rule.OpGradient",),
    "fn": (OnNumbers, CallForOne),
    "numbers": (OnNumbers,),
    "ufunc": ("graph.in_place.InPlace",),
    "asked": (Taken,),
    "outcome": (Taken, PathLeft),
    "guard": (PathLeft,),
    "path": (PathLeft,),
    "_pyop_merge_by_value": (OnNumbers, CallOnTrees),
    "_read": ("profiling.Profile",),
}


def install() -> None:
    """Install all up-calls in C++. ImportError if the list of csrc/runtime/up_calls.h has other names."""
    _core.install_up_calls(CALLS, ATTRIBUTES)
    if _core.up_call("recorded_types") is None:
        _core.fill_up_call("recorded_types", (Tensor,))  # and examples under vmap, once there can be any

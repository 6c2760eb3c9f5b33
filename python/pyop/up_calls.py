"""What C++ calls: each function and class of pyop that the core reaches, by the name it has in csrc/runtime/up_calls.h.

That header says what each is, and which files call it. A name that is missing here or there is an error of the import.
"""

from __future__ import annotations

import os

from . import _core
from ._core import Tensor
from ._tree import TreeDef
from .autograd import _support, recording
from .autograd.batched import BatchedArray, BatchedScalar
from .autograd.in_graphs import apply_symbolic
from .autograd.op_calls import call_op
from .autograd.vmap import apply_batched
from .autograd.writes import refuse_write, setitem
from .compiling.statics import static_key
from .declare.abstract import AbstractRule, AndContext
from .declare.dim import Dim
from .declare.rebuild import CallOnTrees
from .declare.signature import Signature
from .declare.spec import Spec
from .gradients.adjoints import _count, _reshape_like, put
from .gradients.unbroadcast import broadcast_like
from .graph import value_sequence
from .graph.array_protocol import array_function, array_ufunc
from .graph.in_place import in_place
from .graph.operands import is_written_as_operator
from .graph.powers import power_of
from .graph.symbolic_number import Number, OnNumbers
from .graph.unknown import unknown_attribute
from .graph.value_methods import getitem
from .graph.value_refusals import text_of_store
from .profile import Profile
from .refusals import remedy_of_caller
from .tracing.shown import shown_text
from .transforms.marker import argument
from .transforms.op_rule import OpGradient
from .transforms.stop import stopped

__all__ = ["ATTRIBUTES", "CALLS", "install"]

CALLS: dict[str, object] = {
    "package_directory": os.path.join(os.path.dirname(os.path.abspath(__file__)), ""),
    "remedy_of_caller": remedy_of_caller,
    # Values
    "spec_class": Spec,
    "dim_class": Dim,
    "value_array_ufunc": array_ufunc,
    "value_array_function": array_function,
    "value_getitem": getitem,
    "shown_text": shown_text,
    "unknown_attribute": unknown_attribute,
    "value_in_place": in_place,
    "value_length": value_sequence.length,
    "value_iterate": value_sequence.iterate,
    "value_contains": value_sequence.contains,
    "text_of_store": text_of_store,
    "is_written_as_operator": is_written_as_operator,
    "power_of": power_of,
    "opened": argument,
    "stopped": stopped,
    # plans
    "broadcast_like": broadcast_like,
    "reshape_like": _reshape_like,
    "count_along": _count,
    "put": put,
    "number_call": OnNumbers,
    "static_key": static_key,
    "number_class": Number,
    # ops on Tensors
    "recorded_types": (Tensor, BatchedArray, BatchedScalar),
    "recorded_call": call_op,
    # autograd
    "batched_array": BatchedArray,
    "batched_scalar": BatchedScalar,
    "apply_general": _support.apply_general,
    "apply_symbolic": apply_symbolic,
    "apply_batched": apply_batched,
    "call_forward_tree": _support.call_forward_tree,
    "creation": _support.creation,
    "flatten_gradients": _support.flatten_gradients,
    "check_nan": _support.check_nan,
    "set_tangents": _support.set_tangents,
    "any_by_argument": _support.any_by_argument,
    "fit_gradient": _support.fit_gradient,
    "add_tensors": _support.add_tensors,
    "add_hook": _support.add_hook,
    "outer": recording.outer,
    "spread": recording.spread,
    "put_back": recording.put_back,
    "tensor_operator": recording.operator,
    "tensor_power": recording.power,
    "tensor_getitem": recording.getitem,
    "tensor_setitem": setitem,
    "tensor_iterate": recording.iterate,
    "tensor_array_ufunc": recording.array_ufunc,
    "tensor_array_function": recording.array_function,
    "record_in_place": recording.record_in_place,
    "refuse_write": refuse_write,
}

# The attributes that C++ reads, and the classes whose instances must have them.
ATTRIBUTES: dict[str, tuple[type, ...]] = {
    "dtype": (Spec,),
    "shape": (Spec,),
    "terms": (Dim,),
    "name": (Dim,),
    "evaluate": (Dim,),
    "infer": (Signature, AbstractRule, AndContext),
    "flatten_up_to": (TreeDef,),
    "unflatten": (TreeDef,),
    "match": (TreeDef,),
    "bind": (CallOnTrees,),
    "saving": (OpGradient,),
    "fn": (OnNumbers,),
    "numbers": (OnNumbers,),
    "_pyop_merge_by_value": (OnNumbers, CallOnTrees),
    "_read": (Profile,),
}


def install() -> None:
    """Give C++ all of it. ImportError if the list of csrc/runtime/up_calls.h has other names."""
    _core.install_up_calls(CALLS, ATTRIBUTES)

"""Call plans from functions that numba compiles: `@njit` calls a plan by its name, like other compiled functions.

To numba a plan is a dispatcher (`Plan._numba_type_`, which numba asks for). Its function is generated here for the
arguments of the plan, puts their addresses on the stack, and calls the plan as C does (<pyop/entry.h>).

The address of a plan is a dynamic address to numba: code compiled with one is not kept in files (`cache=True` warns).
A called plan lives as long as the machine code that calls it: the library of the code holds it, and libraries hold
those that are linked into them.
"""

from __future__ import annotations

import keyword
import threading
import weakref
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, errors, types
from numba.core.extending import intrinsic
from numba.core.imputils import impl_ret_borrowed
from numba.np import numpy_support

from .._core import InputError, Plan, _take_failure
from .._core import compile as compile_plan

__all__: list[str] = []

_Spec = tuple[str, str, tuple[int, ...]]
lock = threading.Lock()
# By address: of those that compiled code may be made for.
_plans: weakref.WeakValueDictionary[int, Plan] = weakref.WeakValueDictionary()


class CallFailed(RuntimeError):
    """Report from compiled code that a plan has failed; Python gets the plan's own exception."""

    _last = threading.local()

    def __new__(cls) -> Any:
        # numba makes one to see whether it can, and Python another, which is raised.
        exception = _take_failure()
        if exception is not None:
            cls._last.made = exception
            return exception
        return vars(cls._last).pop("made", None) or RuntimeError.__new__(cls)


def _told(spec: _Spec) -> str:
    _, dtype, shape = spec
    return f"{dtype}[{','.join(map(str, shape))}]"


def _parsed(told: str) -> tuple[Any, tuple[int, ...]]:
    dtype, _, shape = told.rstrip("]").partition("[")
    return numpy_support.from_dtype(np.dtype(dtype)), tuple(int(n) for n in shape.split(",") if n)


def keep_alive(context: Any, plan: Plan) -> None:
    """Keep the plan alive as long as the code that numba generates to call it."""
    library = context.active_code_library
    library.pyop_plans = (*getattr(library, "pyop_plans", ()), plan)


@intrinsic(prefer_literal=True)
def _checked(typing: Any, name: Any, told: Any, given: Any) -> Any:
    """Return the argument itself; raise an error of compilation if the plan does not take it."""
    if not isinstance(told, types.StringLiteral):
        return None  # numba tries once more, without
    number, shape = _parsed(told.literal_value)
    kind = types.unliteral(given)
    if isinstance(kind, types.Array):
        fits = kind.ndim == len(shape) and kind.dtype == number
    else:
        # Integers of compiled code are Python's own, which are taken for floats, too.
        integer = isinstance(kind, types.Integer) and kind.bitwidth == 64
        float_wanted = isinstance(number, types.Float | types.Complex)
        fits = not shape and bool(kind == number or (integer and float_wanted))
    if not fits:
        raise errors.TypingError(
            f"{name.literal_value} is {told.literal_value}, but compiled code passes {kind}\n  nothing is cast silently"
        )

    def identity(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, kind, args[2])

    return kind(name, told, kind), identity


@intrinsic(prefer_literal=True)
def _run(typing: Any, address: Any, told: Any, inputs: Any, arrays: Any) -> Any:
    """Call the plan; return its status and the results that are numbers, and write the others into `arrays`."""
    if not isinstance(address, types.IntegerLiteral):
        return None
    before, after = (part.split(";") if part else [] for part in told.literal_value.split("|"))
    wanted = [_parsed(each)[0] for each in before]
    results = [_parsed(each) for each in after]
    numbers = [number for number, shape in results if not shape]
    kind = types.Tuple([types.int32, *numbers])

    def run(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Looked up now: numba keeps this function for ever.
        plan = _plans[address.literal_value]
        word, status_type = ir.IntType(8).as_pointer(), ir.IntType(32)

        def address_of_array(array_type: Any, array: Any) -> Any:
            return builder.bitcast(context.make_array(array_type)(context, builder, array).data, word)

        def place_for(number: Any) -> Any:
            return cgutils.alloca_once(builder, context.get_data_type(number))

        def table_of(addresses: list[Any]) -> Any:
            table = cgutils.alloca_once(builder, ir.ArrayType(word, max(1, len(addresses))))
            for k, each in enumerate(addresses):
                builder.store(each, cgutils.gep_inbounds(builder, table, 0, k))
            return builder.bitcast(table, word)

        given, places, made = [], [], []
        for k, (have, want) in enumerate(zip(inputs.types, wanted, strict=True)):
            value = builder.extract_value(args[2], k)
            if isinstance(have, types.Array):
                given.append(address_of_array(have, value))
                continue
            place = place_for(want)
            number = context.cast(builder, value, have, want)
            builder.store(context.data_model_manager[want].as_data(builder, number), place)
            given.append(builder.bitcast(place, word))
        n_arrays = 0
        for number, shape in results:
            if shape:
                places.append(address_of_array(arrays.types[n_arrays], builder.extract_value(args[3], n_arrays)))
                n_arrays += 1
                continue
            made.append((number, place_for(number)))
            places.append(builder.bitcast(made[-1][1], word))

        def dynamic(number: int, what: str) -> Any:
            return context.add_dynamic_addr(builder, number, info=what)

        function_type = ir.FunctionType(status_type, [word, word, word]).as_pointer()
        function = builder.bitcast(dynamic(plan._call_keeping, "pyop_plan_call"), function_type)
        status = builder.call(function, [dynamic(address.literal_value, repr(plan)), table_of(given), table_of(places)])
        keep_alive(context, plan)
        values = [status]
        for number, place in made:
            values.append(context.data_model_manager[number].from_data(builder, builder.load(place)))
        return context.make_tuple(builder, kind, values)

    return kind(address, told, inputs, arrays), run


@njit
def _in_order(array: Any, shape: Any, words: Any) -> Any:
    if array.shape != shape:
        raise InputError(words)
    return np.ascontiguousarray(array)


def _source(plan: Plan, inputs: list[_Spec], outputs: list[_Spec], form: str) -> tuple[str, dict[str, Any]]:
    """Return the source of a function of the plan's arguments, and the names that it reads, distinct from these."""
    own: dict[str, Any] = {"empty": np.empty, "checked": _checked, "in_order": _in_order, "run": _run}
    own["Failed"] = CallFailed
    plain = [name for name, _, _ in inputs]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in plain):
        plain = [f"argument_{k}" for k in range(len(inputs))]
    lines = []
    for k, (name, spec) in enumerate(zip(plain, inputs, strict=True)):
        title, shape = f"input '{spec[0]}' of {plan!r}", spec[2]
        lines.append(f"_pyop_i{k} = _pyop_checked({title!r}, {_told(spec)!r}, {name})")
        if shape:
            own[f"words{k}"] = f"{title} is {_told(spec)}, but compiled code passes an array of another shape"
            lines.append(f"_pyop_i{k} = _pyop_in_order(_pyop_i{k}, {shape!r}, _pyop_words{k})")
    arrays = []
    for k, (_, dtype, shape) in enumerate(outputs):
        if shape:
            own[f"d{k}"] = np.dtype(dtype)
            lines.append(f"_pyop_o{k} = _pyop_empty({shape!r}, _pyop_d{k})")
            arrays.append(f"_pyop_o{k}")
    told = "|".join(";".join(map(_told, side)) for side in (inputs, outputs))

    def bundle(items: list[str]) -> str:
        return f"({''.join(item + ', ' for item in items)})"

    given = [f"_pyop_i{k}" for k in range(len(inputs))]
    lines.append(f"_pyop_s = _pyop_run({plan.address}, {told!r}, {bundle(given)}, {bundle(arrays)})")
    lines.append("if _pyop_s[0] != 0:\n        raise _pyop_Failed")
    results, n = [], 0
    for k, (_, _, shape) in enumerate(outputs):
        n += not shape
        results.append(f"_pyop_o{k}" if shape else f"_pyop_s[{n}]")
    lines.append(f"return {results[0] if form == 'single' else bundle(results)}")
    head = f"def plan({', '.join(plain)}):"
    return "\n    ".join([head, *lines]), {f"_pyop_{name}": value for name, value in own.items()}


def number_of(plan: Plan, dtype: str) -> Any:
    """Return numba's type for a dtype of the plan's; TypeError if it has none."""
    try:
        if dtype != "float16":  # which numba has for GPUs alone
            return numpy_support.from_dtype(np.dtype(dtype))
        cause = None
    except errors.NumbaNotImplementedError as error:
        cause = error
    raise TypeError(f"{plan!r} cannot be called by numba, which has no {dtype}") from cause


def twin_of(plan: Plan) -> Plan:
    """Return a plan of its own for compiled code to call.

    Otherwise whatever holds the code would hold the plan and through it the dispatcher, and numba drops code when the
    dispatcher is gone.
    """
    return compile_plan(*plan._made_of)


def dispatcher_of(plan: Plan) -> Any:
    """Return the dispatcher that numba calls for a plan; made once, and kept by the plan.

    Raises
    ------
    TypeError
        If C cannot call the plan, if its results are in lists or other containers, or of a dtype that numba has not.
    """
    with lock:
        dispatcher = getattr(plan, "_pyop_numba", None)
        if dispatcher is not None:
            return dispatcher
        inputs, outputs, form = plan._arrays
        if form not in ("single", "tuple"):
            raise TypeError(f"{plan!r} cannot be called by numba: its results are in a {form}; return a tuple instead")
        for _, dtype, _ in [*inputs, *outputs]:
            number_of(plan, dtype)
        twin = twin_of(plan)
        _plans[twin.address] = twin
        source, names = _source(twin, inputs, outputs, form)
        exec(compile(source, f"<{plan!r}, for numba>", "exec"), names)
        made = njit(names["plan"])
        made.pyop_plan = twin
        setattr(plan, "_pyop_numba", made)  # noqa: B010
        return made

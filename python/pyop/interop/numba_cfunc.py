"""Provide `Plan.cfunc`, a C function of a plan's own arguments, which numba compiles.

The compiled function puts the addresses of its arguments on the stack and calls the plan as C does (<pyop/entry.h>).
The plan keeps it, and it calls a twin of the plan, as functions of numba do (`numba.py`).
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from .._core import Plan
from .numba import keep_alive, lock, number_of, twin_of

__all__: list[str] = []


def _caller(plan: Plan, function: int, returned: Any) -> Any:
    """Return an intrinsic of (arguments, result addresses) that calls `plan` by the C function and returns its status.

    With a returned type it is one of (arguments, none), and returns the status and the one result.
    """

    @intrinsic
    def call(typing: Any, given: Any, results: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(8).as_pointer()

            def place_for(number: Any) -> Any:
                return cgutils.alloca_once(builder, context.get_data_type(number))

            def address_of(kind: Any, value: Any) -> Any:
                if not isinstance(kind, types.CPointer):
                    place = place_for(kind)
                    builder.store(context.data_model_manager[kind].as_data(builder, value), place)
                    value = place
                return builder.bitcast(value, word)

            def table_of(addresses: list[Any]) -> Any:
                table = cgutils.alloca_once(builder, ir.ArrayType(word, max(1, len(addresses))))
                for k, each in enumerate(addresses):
                    builder.store(each, cgutils.gep_inbounds(builder, table, 0, k))
                return builder.bitcast(table, word)

            def addresses_of(kinds: Any, values: Any) -> list[Any]:
                return [address_of(kind, builder.extract_value(values, k)) for k, kind in enumerate(kinds)]

            ins, outs = (addresses_of(kind.types, each) for kind, each in zip((given, results), args, strict=True))
            if returned:
                made = place_for(returned)
                outs.append(builder.bitcast(made, word))
            c_type = ir.FunctionType(ir.IntType(32), [word, word, word]).as_pointer()
            entry = builder.bitcast(context.add_dynamic_addr(builder, function, info="pyop_plan_call"), c_type)
            itself = context.add_dynamic_addr(builder, plan.address, info=repr(plan))
            keep_alive(context, plan)
            status = builder.call(entry, [itself, table_of(ins), table_of(outs)])
            if not returned:
                return status
            number = context.data_model_manager[returned].from_data(builder, builder.load(made))
            return context.make_tuple(builder, signature.return_type, [status, number])

        gives = types.Tuple([types.int32, returned]) if returned else types.int32
        return gives(given, results), build

    return call


def _bundle(names: list[str]) -> str:
    return f"({''.join(name + ', ' for name in names)})"


def cfunc_of(plan: Plan) -> Any:
    """Return the C function of a plan; made once, and kept by the plan.

    Raises
    ------
    TypeError
        If C cannot call the plan, or if an argument or result is of a dtype that numba has not.
    """
    with lock:
        compiled = getattr(plan, "_pyop_cfunc", None)
        if compiled is not None:
            return compiled
        inputs, outputs, form = plan._arrays
        numbers = [number_of(plan, dtype) for _, dtype, _ in inputs]
        # How C hands over complex numbers is for each platform to say.
        takes = [
            types.CPointer(number) if shape or isinstance(number, types.Complex) else number
            for number, (_, _, shape) in zip(numbers, inputs, strict=True)
        ]
        gives = [number_of(plan, dtype) for _, dtype, _ in outputs]
        returned = gives[0] if form == "single" and not outputs[0][2] and isinstance(gives[0], types.Float) else None
        twin = twin_of(plan)
        names: dict[str, Any] = {"nan": np.nan}
        given, places = [f"a{k}" for k in range(len(takes))], [f"y{k}" for k in range(len(gives))]
        if returned:
            names["call"] = _caller(twin, twin._call_later, returned)
            body = f"status, number = call({_bundle(given)}, ())\n    return number if status == 0 else nan"
            places, signature = [], returned(*takes)
        else:
            names["call"] = _caller(twin, ctypes.cast(twin.ctypes, ctypes.c_void_p).value or 0, None)
            body = f"return call({_bundle(given)}, {_bundle(places)})"
            signature = types.int32(*takes, *map(types.CPointer, gives))
        source = f"def plan({', '.join(given + places)}):\n    {body}\n"
        exec(compile(source, f"<{plan!r}, as a C function>", "exec"), names)
        made = cfunc(signature)(names["plan"])
        made.pyop_plan = twin
        setattr(plan, "_pyop_cfunc", made)  # noqa: B010
        return made

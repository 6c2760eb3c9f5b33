"""Define `compile`, as users call it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

import numpy as np

from .._core import CompiledFunction
from ..declare.parameters import default_name
from .arguments import Arguments, Instances
from .options import Options
from .tracer import Tracer

__all__ = ["compile"]

P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:  # a table that only type checkers read

    class _Options(TypedDict, total=False):
        static: str | int | Iterable[str | int]
        threads: int
        optimize: bool
        disable: Iterable[str]
        precision: Literal["exact", "fast"]
        max_plans: int
        fallback: bool
        scalars: bool
        machine_code: Literal["off", "hot", "now"] | None


@overload
def compile(fn: np.ufunc, /, *specs: Any, **options: Unpack[_Options]) -> CompiledFunction: ...
@overload
def compile(fn: Callable[P, R], /, *specs: Any, **options: Unpack[_Options]) -> CompiledFunction[P, R]: ...
@overload
def compile(*specs: Any, **options: Unpack[_Options]) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...
def compile(
    *specs: Any,
    static: str | int | Iterable[str | int] = (),
    threads: int = 1,
    optimize: bool = True,
    disable: Iterable[str] = (),
    precision: Literal["exact", "fast"] = "exact",
    max_plans: int = 64,
    fallback: bool = False,
    scalars: bool = True,
    machine_code: Literal["off", "hot", "now"] | None = None,
) -> Any:
    """Compile a function of arrays: ``pyop.compile(f)``, or as a decorator, ``@pyop.compile``.

    The first call with arrays of some dtypes and shapes traces the function: it is called once with symbolic arrays,
    and what it does to them is compiled into a `Plan`, which runs at once and at every later call of the same kind.
    With specs, one plan serves all sizes.

    Parameters
    ----------
    fn : callable
        Function, method, lambda, partial or any other callable. What it does beside computing arrays (printing,
        appending to a list) happens when it is traced, and not again: what changes from call to call must be an
        argument.
    *specs : str or tree of spec, optional
        One for each array argument: ``"float64[n], float64[n]"``, or as `trace` takes them. Every call is checked
        against them.
    static : str, int or iterable of them
        Names or positions of parameters that are no arrays, but decide what the function does: each value has a plan
        of its own. They must be hashable. Keyword-only parameters and ``**kwargs`` are static anyway, and so is what
        can be no array: None, True and False, text, dtypes, functions and classes.
    threads, optimize, disable, precision
        As `Graph.compile` takes them.
    max_plans : int
        Beyond so many plans, the one that was not used for the longest time is forgotten.
    fallback : bool
        What is not NumPy's (SciPy, scikit-learn, a sparse matrix, `np.vectorize`, ``math.sin(x[0])``, functions of C
        and of ctypes) becomes a call of Python in the plan. What it returns is learnt from the first call and checked
        in later ones; where that cannot be, the function itself runs, and a `RetraceWarning` says so. Such functions
        must return the same for the same arguments. There are no gradients through them.
    scalars : bool
        Whether the result is a scalar of NumPy's (``np.float64``: hashable, and JSON takes it) where the function
        itself returns one, such as ``x.sum()`` or ``x[0]``. With False it is an array of no dimension there, as plans
        have it.
    machine_code : {"off", "hot", "now"}, optional
        When loops over single elements become machine code, if llvmlite is installed: never, in the background after
        some milliseconds of work, or before they run for the first time. By default the variable
        ``PYOP_MACHINE_CODE`` of the environment decides, and is ``"hot"``. The results are the same.

    Returns
    -------
    CompiledFunction
        Called as `fn` is. Also takes ``out=``: an array, or one for each array of the result, to write into.

    Raises
    ------
    TypeError
        An argument that is neither array nor number and not static (the first one may be an instance of a class of
        yours, as `self` is), or a static one that is not hashable. Or the function reads a clock, or changes what it
        computes from (a counter, an array that it holds): every call would get what the trace got.
    InputError
        An array does not fit its spec.

    Warns
    -----
    RetraceWarning
        The function is traced too often; says which argument varies, and what to do. Or it draws random numbers: it
        runs as it is.

    Notes
    -----
    Arguments may be tuples, lists, dicts, named tuples and dataclasses of arrays, nested as you like, and so may the
    result. What NumPy returns as a scalar is one, and arrays of no dimension are arrays; ``out=`` takes arrays always.

    A Python number is an input of the plan, whatever its value, and weak as in NumPy: a float32 array times 2.0 is
    float32. If the function needs it to go on (``if t > 1``, ``range(n)``, ``math.sin(t)``), there is a plan for each
    value.

    What the function writes into its arguments (``x += 1``, ``x[1:] = y``) is in the caller's arrays; where such an
    array shares memory with another argument, or cannot be written, the function itself runs. What lies between the
    arrays is done once, when the function is traced, and ``with np.errstate(...)`` belongs around the call. Random
    numbers are an argument, or drawn in a `pyop.op` with ``stateful=True``.

    Globals, variables of the closure, attributes, items of containers and arrays that the function reads are compared
    at every call: where one was changed, the function is traced again. Large arrays are better arguments, or read-only.
    What an instance or a closure holds is an input where it differs from one to the other, or where the function
    changes it: ``self.v = self.v + x`` and ``self.n += 1`` are compiled. Plans keep no instance alive.

    Called with symbolic arrays, or inside ``with graph:``, the function itself runs, and becomes part of that graph. So
    it does, without specs, when called with containers that have rules of their own: subclasses of ndarray, pandas,
    xarray, torch, sparse and masked arrays.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> @pyop.compile
    ... def step(x, v, dt):
    ...     return {"x": x + v * dt, "v": v - x * dt}
    >>> step(np.ones(2), np.zeros(2), 0.5)
    {'x': array([1., 1.]), 'v': array([-0.5, -0.5])}
    >>> norm = pyop.compile(lambda x: np.sqrt(np.sum(x * x)), "float64[n]")
    >>> norm(np.ones(4)), norm(np.ones(9)), norm.cache_info().plans
    (np.float64(2.0), np.float64(3.0), 1)
    """
    options = Options(static, threads, optimize, disable, precision, max_plans, fallback, scalars, machine_code)
    if specs and callable(specs[0]) and not _is_spec(specs[0]):
        return _compile(specs[0], specs[1:], options)
    return lambda fn: _compile(fn, specs, options)


def _is_spec(x: Any) -> bool:
    return isinstance(x, type) and (issubclass(x, np.generic) or x in (float, int, bool, complex, str, bytes, object))


def _is_plain(fn: Any) -> bool:
    """Return whether it is a function without attributes whose code runs when called: no generator or coroutine."""
    special = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return type(fn) is FunctionType and not fn.__dict__ and not fn.__code__.co_flags & special


def _compile(fn: Any, specs: tuple[Any, ...], options: Options, of_instances: bool = False) -> CompiledFunction:
    """Compile a function; `of_instances`: as a method of its first argument."""
    if isinstance(fn, CompiledFunction):
        raise TypeError(f"{fn!r} is compiled already; compile the function itself, {fn.__wrapped__!r}")
    if not callable(fn) or isinstance(fn, type):
        hint = "; decorate its methods" if isinstance(fn, type) else ""
        raise TypeError(f"pyop.compile takes a function, got {type(fn).__name__} {fn!r:.80}{hint}")
    if not _is_plain(fn) and (
        inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn)
    ):
        raise TypeError(f"{default_name(fn)} is a generator or coroutine function: compile the function it calls")
    arguments = Arguments(fn, specs, options.static, of_instances)
    if not of_instances:
        arguments.instances = Instances(arguments, lambda: _compile(fn, (), options, of_instances=True))
    tracer = Tracer(fn, arguments, options)
    made = CompiledFunction(
        fn,
        tracer.miss,
        options.max_plans,
        sum(1 << k for k in arguments.static_positions if k < 64),
        arguments.takes_out,
        arguments.specs is not None,
    )
    may_hold = arguments.parameters.is_method or type(fn) is MethodType or getattr(fn, "__closure__", None)
    if may_hold and arguments.specs is None and not tracer.derives:
        from .states import States  # on first use

        tracer.states = States(fn, arguments, options)
        made._states = tracer.states.known.plans
    vars(made)["_made_with"] = (specs, options)  # for pickle
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        if (value := getattr(fn, attribute, None)) is not None:
            setattr(made, attribute, value)
    return made

"""Switch the recording of Tensors: a mode of the thread, and of a generator or task while it runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from .. import _core
from ..interrupts import entered_as_a_whole

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]

F = TypeVar("F", bound=Callable[..., Any])


def is_grad_enabled() -> bool:
    """Return whether computations with Tensors are recorded on this thread.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_grad_enabled()
    True
    """
    return _core.is_recording()


@entered_as_a_whole
class _Mode(_core.Mode):
    """Provide a mode as a context manager and a decorator; one object may be used again, and inside itself."""

    __slots__ = ("_on",)

    def __new__(cls, *args: Any) -> Any:
        """Return the mode, or the decorated function for ``@no_grad`` without parentheses."""
        if len(args) == 1 and callable(args[0]):
            mode: Any = cls
            return mode()(args[0])
        return super().__new__(cls)

    def __init__(self, on: bool) -> None:
        super().__init__(recording=on)
        self._on = on

    def __call__(self, function: F) -> F:
        on, called = self._on, cast(Any, function)
        wrapper: Callable[..., Any]
        if inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{type(self).__name__} cannot decorate {function.__qualname__}, an asynchronous generator function: "
                f"write `with {type(self).__name__}(...):` inside of it, which is left whenever it yields or awaits"
            )
        if inspect.isgeneratorfunction(function):

            def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with _Mode(on):
                    return (yield from called(*args, **kwargs))

        elif inspect.iscoroutinefunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with _Mode(on):
                    return await called(*args, **kwargs)

        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return _core.call_recording(on, function, args, kwargs)

        return cast(F, functools.wraps(function)(wrapper))


class no_grad(_Mode):
    """Record nothing, as a context manager or as a decorator.

    Examples
    --------
    >>> import numpy as np, pyop
    >>> x = pyop.Tensor(np.ones(2), requires_grad=True)
    >>> with no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(_Mode):
    """Disable recording, as `no_grad`; torch's programs use this name where nothing will ever be differentiated.

    Parameters
    ----------
    mode : bool
        False records.

    Examples
    --------
    >>> with inference_mode():
    ...     is_grad_enabled()
    False
    """

    __slots__ = ()

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class enable_grad(_Mode):
    """Record again, inside of `no_grad` or of a Function, as a context manager or as a decorator.

    Examples
    --------
    >>> with no_grad(), enable_grad():
    ...     is_grad_enabled()
    True
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_Mode):
    """Record or not, from now on; as a context manager, until its end.

    Parameters
    ----------
    mode : bool

    Examples
    --------
    >>> with set_grad_enabled(False):
    ...     is_grad_enabled()
    False
    """

    __slots__ = ()

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._begin()

    def __call__(self, function: F) -> F:
        # It was made to decorate: what it has set from then on was not meant.
        self._undo()
        return super().__call__(function)

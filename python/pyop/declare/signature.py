"""Define `Signature`, the declaration of the arrays a function takes and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .._tree import TreeDef, flatten
from .binding import Binding, DeclarationError, Encoded
from .dtype_text import AnyDType
from .infer import infer_outputs
from .signature_text import Place, read_signature
from .spec import Spec
from .spec_text import point_at
from .spec_tree import core_text, dim_position, make_inputs, make_outputs, one_or_all, tree_text

__all__ = ["Signature"]


_PARTS = ("inputs", "outputs", "gufunc", "like", "like_inputs", "cast", "device")
_TREES = ("_input_leaves", "_input_structure", "_output_leaves", "_output_structure")


class Signature:
    """Declare the specs of the inputs and outputs of a function; immutable.

    `Signature.parse` makes one from text, `Signature.make` from any spelling.

    Parameters
    ----------
    inputs : tuple or None
        One tree of `Spec` for each positional argument; None if the inputs are not declared.
    outputs : tree of Spec, or None
        An empty tuple means no output; None means one array of which nothing is known.
    gufunc : bool
        The shapes are core shapes: the leading dimensions of the inputs broadcast, and the function loops over them.
    like : tuple of str or int, or None
        Output k has the dtype and shape of this argument.
    like_inputs : tuple of int
        The same as positions of input leaves.
    cast : "no", "safe" or "same_kind"
        How arguments may be cast to their declared dtypes, in the words of `numpy.can_cast`. Results never are.
    device : "any" or None
        With "any", arrays of other devices than the CPU are handed to the function as they are.

    Examples
    --------
    >>> s = Signature.parse("float64[n], float64[n+1] -> float64[2*n]")
    >>> s.inputs
    (Spec('float64[n]'), Spec('float64[n+1]'))
    >>> s.infer([Spec.parse("float64[3]"), Spec.parse("float64[_]")])
    [Spec('float64[6]')]
    """

    __slots__ = (*_PARTS, "_binding", "_inferred", *_TREES)

    inputs: tuple[Any, ...] | None
    outputs: Any
    gufunc: bool
    like: tuple[str | int, ...] | None
    like_inputs: tuple[int, ...]
    cast: str
    device: str | None
    _binding: Binding
    _inferred: dict[tuple[Spec, ...], list[Spec]]
    _input_leaves: list[Spec] | None
    _input_structure: TreeDef | None
    _output_leaves: list[Spec]
    _output_structure: TreeDef

    def __init__(
        self,
        inputs: tuple[Any, ...] | None = None,
        outputs: Any = None,
        gufunc: bool = False,
        like: tuple[str | int, ...] | None = None,
        like_inputs: tuple[int, ...] = (),
        cast: str = "no",
        device: str | None = None,
    ) -> None:
        put = object.__setattr__
        _check_taking(cast, device)
        for name, value in zip(_PARTS, (inputs, outputs, gufunc, like, like_inputs, cast, device), strict=True):
            put(self, name, value)
        for side, tree in (("_input", inputs), ("_output", Spec() if outputs is None else outputs)):
            leaves, structure = (None, None) if tree is None else flatten(tree)
            put(self, f"{side}_leaves", leaves)
            put(self, f"{side}_structure", structure)
        for leaf in [*(self._input_leaves or ()), *self._output_leaves]:
            if not isinstance(leaf, Spec):
                raise TypeError(
                    f"a Signature is made of Specs, got {type(leaf).__name__} {leaf!r:.80}; "
                    "Signature.make takes the other spellings"
                )
        if like is not None and len(like_inputs) != len(self._output_leaves):
            raise ValueError(f"like= names {len(like_inputs)} arguments for {len(self._output_leaves)} outputs")
        put(self, "_inferred", {})
        put(self, "_binding", Binding(self._input_leaves, self._output_leaves, like_inputs, gufunc))

    @classmethod
    def parse(cls, text: str, dtype: Any = None) -> Signature:
        """Read a typed or a gufunc declaration.

        Parameters
        ----------
        text : str
            ``"float64[n], float64[n] -> float64[]"`` or ``"(n,m),(m)->(n)"``.
        dtype : dtype or sequence of dtypes, optional
            Of a gufunc declaration, which leaves dtypes open: one for all arrays, or one for each input and then
            each output. A type variable, ``"T"``, makes them all alike.

        Returns
        -------
        Signature

        Raises
        ------
        ValueError
            Wrong text, or names that do not fit together; the message points at the character.

        Examples
        --------
        >>> str(Signature.parse("f8[n],f8[n]->f8[]"))
        'float64[n], float64[n] -> float64[]'
        >>> Signature.parse("(n),(n)->()", dtype="T").outputs
        Spec('T[]')
        >>> Signature.parse("float64[n] -> float64[m]")
        Traceback (most recent call last):
            ...
        ValueError: no input binds 'm': use it in an input, or write 'm!' for a size known only after the call
            float64[n] -> float64[m]
                                  ^
        """
        read = read_signature(text)
        inputs, outputs = read.inputs, read.outputs
        if dtype is not None:
            if not read.gufunc:
                raise TypeError(
                    f"dtype= goes with a gufunc declaration, '(n),(m)->(n)'; {text!r:.80} has dtypes itself"
                )
            every = _dtypes(dtype, len(inputs), len(outputs))
            inputs = [Spec(d, spec.shape) for d, spec in zip(every, inputs, strict=False)]
            outputs = [Spec(d, spec.shape) for d, spec in zip(every[len(inputs) :], outputs, strict=True)]
        try:
            return cls(tuple(inputs), one_or_all(outputs), read.gufunc)
        except DeclarationError as error:
            raise point_at(text, _position(read.places[error.side][error.leaf], error.dim), str(error)) from None

    @classmethod
    def make(
        cls,
        text: str | Signature | None = None,
        *,
        inputs: Any = None,
        outputs: Any = None,
        like: Any = None,
        dtype: Any = None,
        parameters: Sequence[str] | None = None,
    ) -> Signature:
        """Return a signature from any spelling.

        Parameters
        ----------
        text : str or Signature, optional
            The whole declaration; excludes `inputs`, `outputs` and `like`.
        inputs : sequence or str, optional
            One tree of specs for each positional argument, or specs separated by commas.
        outputs : tree or str, optional
            A tree (tuple, list, dict, named tuple, dataclass instance) of anything that `Spec.make` takes, or specs
            separated by commas. In a tree, a pair of a dtype and sizes, such as ``("float64", (3, None))``, is a spec.
        like : str, int or sequence of them, optional
            Output k has dtype and shape of this parameter, given by name or position.
        dtype : optional
            See `parse`.
        parameters : sequence of str, optional
            Names of the positional parameters of the function.

        Returns
        -------
        Signature

        Raises
        ------
        ValueError
            Wrong text, names that do not fit together, or `like` naming no parameter.
        TypeError
            Arguments that exclude each other, or something that is no spec.

        Examples
        --------
        >>> Signature.make(outputs={"a": "f8[n]", "b": int}).outputs
        {'a': Spec('float64[n]'), 'b': Spec('int64')}
        >>> str(Signature.make(like="x", parameters=["x", "y"]))
        '... -> like x'
        """
        if text is not None:
            for name, value in (("inputs", inputs), ("outputs", outputs), ("like", like)):
                if value is not None:
                    raise TypeError(
                        f"the text {str(text)!r:.80} declares inputs and outputs, so {name}= is one too many"
                    )
            if isinstance(text, Signature):
                if dtype is not None:
                    raise TypeError("dtype= goes with the text of a gufunc declaration, not with a Signature")
                return text
            return cls.parse(text, dtype)
        if dtype is not None:
            raise TypeError("dtype= goes with a gufunc declaration, '(n),(m)->(n)'; write dtypes into the specs")
        if outputs is not None and like is not None:
            raise TypeError("outputs= and like= both declare the outputs: give one of them")
        made = None if inputs is None else make_inputs(inputs)
        declared = None
        try:
            if like is not None:
                return cls(made, *_like_outputs(like, parameters, made))
            declared = None if outputs is None else make_outputs(outputs)
            return cls(made, declared)
        except DeclarationError as error:
            leaves, structure = flatten(made if error.side == "input" else declared)
            spec, path = leaves[error.leaf], structure.leaf_paths()[error.leaf]
            message = f"{error.side}s{path}: {error}"
            raise point_at(str(spec), dim_position(spec, error.dim), message) from None

    def taking(self, cast: str = "no", device: str | None = None) -> Signature:
        """Return the same declaration for arguments that may be cast, or lie on other devices.

        Examples
        --------
        >>> Signature.parse("float64[n] -> float64[]").taking(cast="safe").cast
        'safe'
        """
        if (cast, device) == (self.cast, self.device):
            return self
        return Signature(self.inputs, self.outputs, self.gufunc, self.like, self.like_inputs, cast, device)

    def encode(self) -> Encoded:
        """Return the form that the C++ ``Contract`` is built from; `pyop.declare.binding` documents it."""
        taking = {} if self.cast == "no" else {"casting": self.cast}
        return {**self._binding.encoded, **taking, **({"any_device": True} if self.device == "any" else {})}

    def cast_to(self, leaf: int, dtype: AnyDType) -> AnyDType | None:
        """Return the dtype that an argument is cast to for input `leaf`; None if it stays as it is."""
        if self._input_leaves is None or leaf >= len(self._input_leaves):
            return None
        declared = self._input_leaves[leaf].dtype
        if not isinstance(declared, np.dtype) or declared == dtype or not {declared.kind, dtype.kind} <= _CASTABLE:
            return None
        return declared if np.can_cast(dtype, declared, casting=_casting(self.cast)) else None

    def infer(self, input_specs: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the output leaves for input leaves of these specs.

        Parameters
        ----------
        input_specs : sequence of Spec

        Returns
        -------
        list of Spec
            With what is not known yet left open.

        Raises
        ------
        ValueError
            An input provably is not what is declared.

        Examples
        --------
        >>> s = Signature.parse("(n,m),(m)->(n)")
        >>> s.infer([Spec.parse("float64[k,3,4]"), Spec.parse("float64[4]")])
        [Spec('_[k,3]')]
        """
        # A graph is built from many calls with few different specs.
        given = tuple(input_specs)
        known = self._inferred.get(given)
        if known is None:
            known = infer_outputs(
                self._input_leaves, self._output_leaves, self.like_inputs, self.gufunc, given, self._label
            )
            if len(self._inferred) >= 64:
                self._inferred.clear()
            self._inferred[given] = known
        return known.copy()

    def _label(self, leaf: int) -> str:
        """Return the name of an input leaf in errors: ``argument 1['x']``."""
        assert self._input_structure is not None
        position, _, rest = self._input_structure.leaf_paths()[leaf][1:].partition("]")
        return f"argument {position}{rest}"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Signature is immutable: cannot set {name!r}; make a new one")

    def _key(self) -> tuple[object, ...]:
        leaves = None if self._input_leaves is None else tuple(self._input_leaves)
        return (
            leaves,
            self._input_structure,
            None if self.outputs is None else tuple(self._output_leaves),
            self._output_structure,
            self.gufunc,
            self.like_inputs,
            self.cast,
            self.device,
        )

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Signature) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[object, ...]:
        return Signature, tuple([getattr(self, name) for name in _PARTS])

    def __str__(self) -> str:
        if self.gufunc:
            text = f"{','.join(map(core_text, self.inputs or ()))}->{','.join(map(core_text, self._output_leaves))}"
            dtypes = [str(Spec(spec.dtype)) for spec in [*(self._input_leaves or ()), *self._output_leaves]]
            return text if set(dtypes) == {"_"} else f"{text} of {', '.join(dtypes)}"
        if self.like is not None:
            outputs = ", ".join(f"like {name}" for name in self.like)
        elif (
            type(self.outputs) is tuple
            and len(self.outputs) != 1
            and all(isinstance(part, Spec) for part in self.outputs)
        ):
            outputs = ", ".join(map(str, self.outputs)) or "()"
        else:
            outputs = tree_text(Spec() if self.outputs is None else self.outputs)
        if self.inputs is None:
            return f"... -> {outputs}"
        inputs = ", ".join(map(tree_text, self.inputs))
        # "() -> ()" is the gufunc of scalars
        return f"{inputs or ('' if outputs == '()' else '()')} -> {outputs}".lstrip()

    def __repr__(self) -> str:
        return f"Signature({str(self)!r})"


_CASTABLE = frozenset("biufcV")  # V: the dtypes of ml_dtypes; of structures np.can_cast says no


def _casting(cast: str) -> Any:
    return cast


def _check_taking(cast: Any, device: Any) -> None:
    if cast not in ("no", "safe", "same_kind"):
        hint = ": it would silently lose values" if cast == "unsafe" else ""
        raise ValueError(f'cast= is "no", "safe" or "same_kind", as in numpy.can_cast, got {cast!r:.80}{hint}')
    if device not in (None, "any"):
        raise ValueError(
            f'device= is "any", for a function that takes arrays of other devices as they are, or None; got '
            f"{device!r:.80}"
        )


def _position(place: Place, dim: int | None) -> int:
    return place.start if dim is None else place.dims[dim]


def _dtypes(dtype: Any, n_in: int, n_out: int) -> list[Any]:
    if type(dtype) not in (tuple, list):
        return [dtype] * (n_in + n_out)
    if len(dtype) != n_in + n_out:
        raise ValueError(
            f"dtype= has {len(dtype)} entries, the declaration {n_in} inputs and {n_out} outputs: "
            "give one dtype for all arrays, or one for each input and then each output"
        )
    return list(dtype)


def _like_outputs(
    like: Any, parameters: Sequence[str] | None, inputs: tuple[Any, ...] | None
) -> tuple[Any, bool, tuple[str | int, ...], tuple[int, ...]]:
    """Return the arguments of Signature, from the second on, for ``like=``."""
    alone = not isinstance(like, tuple | list)
    names = (like,) if alone else tuple(like)
    places = tuple(_like_input(name, parameters, inputs) for name in names)
    return Spec() if alone else tuple(Spec() for _ in names), False, names, places


def _like_input(name: Any, parameters: Sequence[str] | None, inputs: tuple[Any, ...] | None) -> int:
    """Return the position among the input leaves of the argument that ``like=`` names."""
    known = "the function has " + (", ".join(map(repr, parameters or ())) or "no positional parameter")
    if isinstance(name, str):
        if parameters is None:
            raise ValueError(f"like={name!r}: the names of the parameters are not known; give the position")
        if name not in parameters:
            raise ValueError(f"like={name!r} is not a positional parameter: {known}")
        position = list(parameters).index(name)
    elif isinstance(name, int) and not isinstance(name, bool):
        position = name
        if position < 0 or (parameters is not None and position >= len(parameters)):
            raise ValueError(f"like={name} is not the position of a parameter: {known}")
    else:
        raise TypeError(f"like= takes names or positions of parameters, got {type(name).__name__} {name!r:.80}")
    if inputs is None:
        return position
    if position >= len(inputs):
        raise ValueError(f"like={name!r}: inputs= declares {len(inputs)} arguments, and not this one")
    if not isinstance(inputs[position], Spec):
        raise ValueError(f"like={name!r}: this argument is a tree of arrays; declare the output by outputs=")
    return len(flatten(inputs[:position])[0])

"""Define `Dim`, a symbolic size.

A Dim is a polynomial with integer coefficients in one canonical form, so two Dims are equal whenever they are the same
polynomial. An inexact floor division has no polynomial form and is kept as one more opaque quantity beside the names.
Names stand for sizes, so they are never negative.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping
from math import gcd
from numbers import Number
from typing import Any, Final, NoReturn, TypeAlias

from .._core import shown, watching
from ..refusals import refusal

__all__ = ["MAX_SIZE", "Dim", "DimTooLarge", "Quotient"]

# Sizes are npy_intp in the core; the other limits keep hostile declarations from eating time, stack or memory.
MAX_SIZE: Final = 2**63 - 1
_MAX_TERMS: Final = 256
_MAX_DEGREE: Final = 16
_MAX_NESTING: Final = 16


def _decides() -> bool:
    """Return whether a function under trace asks, whose path would depend on the answer."""
    return watching() and not str(sys._getframe(2).f_globals.get("__name__", "")).startswith("pyop.")


class DimTooLarge(ValueError):
    """Report a symbolic size that is too large to keep: too many terms, too high a power, or over 64 bits."""


class Quotient:
    """Represent ``num // den`` without a polynomial form. `Dim.__floordiv__` makes equal ones look alike."""

    __slots__ = ("_hash", "den", "nesting", "num", "text")

    def __init__(self, num: int | Dim, den: int | Dim) -> None:
        self.num = num
        self.den = den
        self.nesting = 1 + max(_nesting(num), _nesting(den))
        if self.nesting > _MAX_NESTING:
            raise DimTooLarge(f"a symbolic size nests more than {_MAX_NESTING} floor divisions")
        self._hash = hash((num, den))
        self.text = f"{_as_operand(num, left=True)}//{_as_operand(den)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.num == other.num and self.den == other.den

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Quotient, (self.num, self.den)


_Atom: TypeAlias = str | Quotient
_Monomial: TypeAlias = tuple[_Atom, ...]  # n*n*m is ("m", "n", "n"); () is the constant term
_Terms: TypeAlias = dict[_Monomial, int]


class Dim:
    """Represent a size that is known only at run: a polynomial over names.

    Sums, differences and products are simplified, constant results are plain ints, and ``//`` is exact where it can
    be. Two Dims are equal if and only if they are the same expression; use `same` to ask whether two sizes agree.

    Parameters
    ----------
    name : str
        The name of the size: ASCII letters, digits and underscores.

    Examples
    --------
    >>> n = Dim("n")
    >>> print(2 * (n + 1) - 1)
    2*n+1
    >>> 1 + n == n + 1, n - n, (n * 4) // 2 == n * 2
    (True, 0, True)
    >>> (n // 2 + 1).evaluate({"n": 7})
    4
    """

    __slots__ = ("_hash", "_terms")
    __array_ufunc__ = None  # NumPy scalars leave the arithmetic to us

    _terms: tuple[tuple[_Monomial, int], ...]
    _hash: int

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"Dim() takes the name of a size, got {type(name).__name__}")
        if not (name.isascii() and name.isidentifier()) or name == "_":
            raise ValueError(f"{name[:80]!r} is not a name of a size: use ASCII letters, digits and underscores")
        self._fill((((name,), 1),))

    def _fill(self, terms: tuple[tuple[_Monomial, int], ...]) -> None:
        object.__setattr__(self, "_terms", terms)
        object.__setattr__(self, "_hash", hash(terms))

    @property
    def terms(self) -> tuple[tuple[_Monomial, int], ...]:
        """Return the terms of the sum: factors (names and `Quotient`) and their coefficient."""
        return self._terms

    @property
    def names(self) -> frozenset[str]:
        """Return the names that the size depends on."""
        names: set[str] = set()
        for monomial, _ in self._terms:
            for atom in monomial:
                if isinstance(atom, str):
                    names.add(atom)
                else:
                    for part in (atom.num, atom.den):
                        if isinstance(part, Dim):
                            names |= part.names
        return frozenset(names)

    @property
    def name(self) -> str | None:
        """Return the name if the size is exactly one name, else None."""
        if len(self._terms) == 1:
            monomial, coef = self._terms[0]
            if coef == 1 and len(monomial) == 1 and isinstance(monomial[0], str):
                return monomial[0]
        return None

    def affine(self) -> tuple[int, str, int] | None:
        """Return ``(a, name, b)`` if the size is ``a*name + b``, otherwise None."""
        terms = dict(self._terms)
        constant = terms.pop((), 0)
        if len(terms) == 1:
            monomial, coef = terms.popitem()
            if len(monomial) == 1 and isinstance(monomial[0], str):
                return coef, monomial[0], constant
        return None

    def evaluate(self, env: Mapping[str, int | Dim]) -> int | Dim:
        """Return the size with names replaced by their values in `env`; names that it lacks stay.

        Parameters
        ----------
        env : mapping of str to int or Dim

        Returns
        -------
        int or Dim
            An int if no name is left.

        Examples
        --------
        >>> n, m = Dim("n"), Dim("m")
        >>> print((n * m + 1).evaluate({"n": 2}))
        2*m+1
        """
        total: int | Dim = 0
        for monomial, coef in self._terms:
            product: int | Dim = coef
            for atom in monomial:
                if isinstance(atom, str):
                    value = env[atom] if atom in env else _atom(atom)
                    product = product * (value if isinstance(value, Dim) else operator.index(value))
                else:
                    product = product * (_evaluate(atom.num, env) // _evaluate(atom.den, env))
            total = total + product
        return total

    # --- arithmetic

    def __add__(self, other: int | Dim) -> int | Dim:
        terms = _terms_of(other)
        if terms is None:
            return NotImplemented
        result = dict(self._terms)
        for monomial, coef in terms:
            result[monomial] = result.get(monomial, 0) + coef
        return _from_terms(result)

    __radd__ = __add__

    def __neg__(self) -> int | Dim:
        return _from_terms({monomial: -coef for monomial, coef in self._terms})

    def __pos__(self) -> Dim:
        return self

    def __sub__(self, other: int | Dim) -> int | Dim:
        return NotImplemented if _terms_of(other) is None else self + -other

    def __rsub__(self, other: int | Dim) -> int | Dim:
        return NotImplemented if _terms_of(other) is None else -self + other

    def __mul__(self, other: int | Dim) -> int | Dim:
        terms = _terms_of(other)
        if terms is None:
            return NotImplemented
        if len(self._terms) * len(terms) > 16 * _MAX_TERMS:
            raise DimTooLarge(f"a symbolic size has more than {_MAX_TERMS} terms")
        result: _Terms = {}
        for left, a in self._terms:
            for right, b in terms:
                monomial = tuple(sorted(left + right, key=_atom_key)) if left and right else left or right
                result[monomial] = result.get(monomial, 0) + a * b
        return _from_terms(result)

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Dim) -> int | Dim:
        return NotImplemented if _terms_of(other) is None else _divide(self, other)

    def __rfloordiv__(self, other: int | Dim) -> int | Dim:
        return NotImplemented if _terms_of(other) is None else _divide(other, self)

    # --- what a symbolic size is not

    def _not_a_number(self, what: str) -> NoReturn:
        raise refusal(
            f"the size {self._text()} is symbolic: its number is known only when the graph runs, so {what}. "
            "Compute with it as it is, trace with concrete sizes, or move this code into an op."
        )

    def __bool__(self) -> bool:
        self._not_a_number("it cannot be a condition")

    def __int__(self) -> int:
        self._not_a_number("it cannot be an int")

    def __index__(self) -> int:
        self._not_a_number("it cannot be an index, a length or a range")

    def __float__(self) -> float:
        self._not_a_number("it cannot be a float")

    def _compare(self, other: object) -> bool:
        self._not_a_number("it cannot be ordered")

    __lt__ = __le__ = __gt__ = __ge__ = _compare

    def _no_size(self, other: object) -> Any:
        if isinstance(other, Dim | Number):
            self._not_a_number("it has only the operators +, -, * and //")
        return NotImplemented

    __mod__ = __rmod__ = __pow__ = __rpow__ = __divmod__ = __rdivmod__ = __truediv__ = __rtruediv__ = _no_size
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _no_size
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _no_size

    # --- object protocol

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Dim is immutable: cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        same = self is other or (isinstance(other, Dim) and self._terms == other._terms)
        if not same and isinstance(other, Dim | Number) and _decides():
            apart = None if _terms_of(other) is None else self - other  # type: ignore[operator]
            if isinstance(apart, Dim) or apart is None:
                self._not_a_number(f"whether it is {other} is not known")
        return same

    def __hash__(self) -> int:
        if _decides():  # the core looks Dims up by their terms
            self._not_a_number("it is not known whether it is among the keys of a dict or the items of a set")
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return _from_terms, (dict(self._terms),)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int if _decides() else Dim

    def __repr__(self) -> str:
        return f"Dim({self.__str__()!r})"

    def __str__(self) -> str:
        text = self._text()
        return shown(text, f"the size {text}, which is symbolic (its number is known only when the graph runs),")

    def _text(self) -> str:
        # Positive terms first, so that a minus sign is nearly always a subtraction: "n-1", "1-n".
        text = ""
        for monomial, coef in sorted(self._terms, key=lambda term: term[1] < 0):
            sign = "-" if coef < 0 else "+" if text else ""
            factors = [str(abs(coef))] if abs(coef) != 1 or not monomial else []
            alone = len(monomial) == 1 and not factors and sign != "-"
            factors += [a if isinstance(a, str) else a.text if alone else f"({a.text})" for a in monomial]
            text += sign + "*".join(factors)
        return text


def _atom_key(atom: _Atom) -> tuple[bool, str]:
    return (False, atom) if isinstance(atom, str) else (True, atom.text)


def _rank(monomial: _Monomial) -> tuple[int, list[tuple[bool, str]]]:
    """Return the sort key of a term: graded lexicographic order, the highest first, for polynomial division."""
    return -len(monomial), [_atom_key(atom) for atom in monomial]


def _nesting(x: int | Dim) -> int:
    if isinstance(x, int):
        return 0
    return max((a.nesting for m, _ in x._terms for a in m if not isinstance(a, str)), default=0)


def _as_operand(x: int | Dim, left: bool = False) -> str:
    """Return the text of an operand of ``//``: bare if it reads back as one, in parentheses otherwise."""
    if isinstance(x, int):
        return str(x) if x >= 0 else f"({x})"
    bare = x.name is not None or (left and len(x._terms) == 1 and x._terms[0][1] > 0)
    return str(x) if bare else f"({x})"


def _terms_of(x: object) -> tuple[tuple[_Monomial, int], ...] | None:
    if isinstance(x, Dim):
        return x._terms
    try:
        value = operator.index(x)  # type: ignore[arg-type]
    except TypeError:
        return None
    return (((), value),)


def _from_terms(terms: _Terms) -> int | Dim:
    """Return the canonical Dim of these terms, or an int if it is constant. Only bare names are made elsewhere."""
    terms = {monomial: coef for monomial, coef in terms.items() if coef}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    if len(terms) > _MAX_TERMS:
        raise DimTooLarge(f"a symbolic size has more than {_MAX_TERMS} terms")
    for monomial, coef in terms.items():
        if len(monomial) > _MAX_DEGREE:
            raise DimTooLarge(f"a symbolic size has a product of more than {_MAX_DEGREE} factors")
        if abs(coef) > MAX_SIZE:
            raise DimTooLarge("a number in a symbolic size does not fit 64 bits")
    self = object.__new__(Dim)
    self._fill(tuple((m, terms[m]) for m in sorted(terms, key=_rank)))
    return self


def _atom(atom: _Atom) -> int | Dim:
    return _from_terms({(atom,): 1})


def _evaluate(x: int | Dim, env: Mapping[str, int | Dim]) -> int | Dim:
    return x if isinstance(x, int) else x.evaluate(env)


# --- division


def _divide(num: int | Dim, den: int | Dim) -> int | Dim:
    num, den = (x if isinstance(x, Dim) else operator.index(x) for x in (num, den))
    if isinstance(den, int):
        if isinstance(num, int):
            return num // den
        return _divide_by_int(num, den)
    if num == 0:
        return 0
    if isinstance(num, Dim):
        quotient = _exact_quotient(num, den)
        if quotient is not None:
            return quotient
    # The same quotient in lowest terms, and with the denominator's leading coefficient positive.
    common = gcd(_content(num), _content(den))
    if den._terms[0][1] < 0:
        common = -common
    if common != 1:
        num = _scale_down(num, common)
        den = _scale_down(den, common)
        if isinstance(den, int):
            return _divide(num, den)
    return _atom(Quotient(num, den))


def _divide_by_int(num: Dim, den: int) -> int | Dim:
    """Divide by a number: ``(den*q + r) // den`` is ``q + r // den``, so the coefficients of r stay below den."""
    if den == 0:
        raise ZeroDivisionError(f"the size ({num})//0 divides by zero")
    if den < 0:
        num_or_int, den = -num, -den
        if isinstance(num_or_int, int):
            return num_or_int // den
        num = num_or_int
    whole: int | Dim = _from_terms({m: c // den for m, c in num._terms})
    rest = {m: c % den for m, c in num._terms if c % den}
    constant = rest.pop((), 0)
    if not rest:
        return whole  # 0 <= constant < den
    # (g*r + k) // (g*d) is (r + k//g) // d
    common = gcd(den, *rest.values())
    rest = {m: c // common for m, c in rest.items()}
    den //= common
    constant //= common
    if len(rest) == 1:
        # (x//a + k) // den is (x + a*k) // (a*den)
        (monomial, coef) = next(iter(rest.items()))
        if coef == 1 and len(monomial) == 1:
            inner = monomial[0]
            if isinstance(inner, Quotient) and isinstance(inner.den, int):
                return whole + _divide(inner.num + inner.den * constant, inner.den * den)
    rest[()] = constant
    return whole + _atom(Quotient(_from_terms(rest), den))


def _exact_quotient(num: Dim, den: Dim) -> int | Dim | None:
    """Return ``num / den`` if it is a polynomial, else None: long division that stops at the first remainder."""
    lead, lead_coef = den._terms[0]
    quotient: _Terms = {}
    rest: int | Dim = num
    while isinstance(rest, Dim) or rest != 0:
        top, coef = rest._terms[0] if isinstance(rest, Dim) else ((), rest)
        factor = _monomial_quotient(top, lead)
        if factor is None or coef % lead_coef or len(quotient) >= 64:
            return None
        quotient[factor] = coef // lead_coef
        try:
            rest = rest - _from_terms({factor: coef // lead_coef}) * den
        except DimTooLarge:
            return None
    return _from_terms(quotient)


def _monomial_quotient(num: _Monomial, den: _Monomial) -> _Monomial | None:
    left = list(num)
    for atom in den:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _content(x: int | Dim) -> int:
    return abs(x) if isinstance(x, int) else gcd(*(coef for _, coef in x._terms))


def _scale_down(x: int | Dim, by: int) -> int | Dim:
    return x // by if isinstance(x, int) else _from_terms({m: c // by for m, c in x._terms})

"""Ops written in Cython, and Cython that calls plans."""

from ._solve import is_native, newton
from .ops import smooth, softplus

__all__ = ["is_native", "newton", "smooth", "softplus"]

"""Ops written in Cython, and Cython that calls plans."""

from ._solve import newton
from .ops import smooth, softplus

__all__ = ["newton", "smooth", "softplus"]

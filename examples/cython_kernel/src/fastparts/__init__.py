"""Ops written in Cython, and Cython that calls plans."""

from ._solve import newton

__all__ = ["newton"]

"""All cases."""

from . import cases_elements, cases_linear, cases_moves
from .case import Case, cases

__all__ = ["Case", "cases", "cases_elements", "cases_linear", "cases_moves"]

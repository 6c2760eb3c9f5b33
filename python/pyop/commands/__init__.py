"""Implement commands of ``python -m pyop`` that run programs and functions of the user: a module a kind."""

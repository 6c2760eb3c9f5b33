"""Diagonals and triangles: diag, diagonal, trace, tril, triu."""

"""Group functions of diagonals and triangles: diag, diagonal, trace, tril, triu."""

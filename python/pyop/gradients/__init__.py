"""Hold gradient rules for NumPy's functions, and find the rule of a function.

`table` finds a rule; the families (`elementwise`, `reductions`, ...) are the rules. `reverse` and `forward` write
derivatives into a graph, `transforms` makes functions of functions.
"""

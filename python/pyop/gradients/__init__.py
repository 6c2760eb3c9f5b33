"""Gradients: rules for NumPy's functions, accumulation on graphs, and the transformations `grad`, `jvp`, `vmap`, ...

`table` is what finds a rule; the families (`elementwise`, `reductions`, ...) are the rules. `reverse` and `forward`
write derivatives into a graph, `transforms` makes functions of functions.
"""

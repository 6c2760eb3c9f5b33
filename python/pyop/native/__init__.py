"""Turn compiled code from outside into ops.

`native_op.py` is the entry point. `sources.py` finds the code in its argument, `c_types.py` reads its types, and
`layout.py` checks them against the declaration. `as_ufunc.py` makes a ufunc of any op.
"""

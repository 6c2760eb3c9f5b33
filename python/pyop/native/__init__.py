"""Compiled code from outside as ops.

`native_op.py` is the front; `sources.py` finds the code in what it is given, `c_types.py` reads what it says of its
types, `layout.py` holds that against the declaration. `as_ufunc.py` makes a ufunc of any op.
"""

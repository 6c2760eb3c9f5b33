"""Make machine code for loop bodies by LLVM.

`compiler.py` makes it, `background.py` decides when, and `shown.py` shows it. The IR comes from C++
(csrc/plan/machine_code/). Nothing here is imported before a loop is hot.
"""

"""Machine code for loop bodies, by LLVM: what makes it (`compiler.py`), when (`background.py`), and how it is shown
(`shown.py`). The IR comes from C++ (csrc/plan/machine_code/). Nothing here is imported before a loop is hot.
"""

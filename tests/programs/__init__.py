"""Kernels as people write them in NumPy: functions of numerical programs, none of them written for pyop.

They write into their arguments, make arrays, loop, branch on contents, keep views, swap buffers.
`registry.kernels` has all of them, `test_kernels.py` holds each, compiled, against itself, and
``python -m benchmarks kernels`` says how fast they are.
"""

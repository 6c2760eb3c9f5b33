"""The budgets of pyop as measurements: ``python -m benchmarks [NAME …] [--json F] [--rounds N] [--quick]``.

BLAS has one thread: its threads wait for each other by turning round, and on a machine that does anything else beside a
product then takes the thread's whole slice of time, which is what the clock shows.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

"""The budgets of pyop as measurements: ``python -m benchmarks [NAME …] [--json F] [--rounds N] [--quick]``."""

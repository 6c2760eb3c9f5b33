"""Group distribution functions of scipy.special and their inverses: ndtr, gammainc, betainc."""

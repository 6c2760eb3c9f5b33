"""Group functions of arrays as sets: unique, isin, union1d."""

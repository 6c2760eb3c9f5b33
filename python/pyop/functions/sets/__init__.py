"""Arrays as sets: unique, isin, union1d."""

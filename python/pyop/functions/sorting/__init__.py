"""Group functions that sort and search: sort, argsort, partition, lexsort, searchsorted."""

"""Sorting and searching: sort, argsort, partition, lexsort, searchsorted."""

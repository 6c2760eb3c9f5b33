"""Functions that write into what they are given."""

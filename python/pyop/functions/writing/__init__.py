"""Group functions that write into their arguments."""

"""State of instances and closures as inputs of plans."""

"""What a function declares of the arrays it takes and returns: sizes, specs, signatures, contracts."""

"""distributions: what this room holds."""

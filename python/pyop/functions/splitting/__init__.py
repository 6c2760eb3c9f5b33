"""splitting: what this room holds."""

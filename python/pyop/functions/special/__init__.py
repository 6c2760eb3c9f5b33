"""special: what this room holds."""

"""numerics: what this room holds."""

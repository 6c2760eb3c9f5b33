"""adjoints: what this room holds."""

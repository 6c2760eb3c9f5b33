"""sets: what this room holds."""

"""indexing: what this room holds."""

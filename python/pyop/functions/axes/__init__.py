"""axes: what this room holds."""

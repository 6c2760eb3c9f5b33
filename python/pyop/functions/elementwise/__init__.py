"""elementwise: what this room holds."""

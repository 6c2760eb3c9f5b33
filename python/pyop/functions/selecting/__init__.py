"""selecting: what this room holds."""

"""joining: what this room holds."""

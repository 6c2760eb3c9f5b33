"""reshaping: what this room holds."""

"""statistics: what this room holds."""

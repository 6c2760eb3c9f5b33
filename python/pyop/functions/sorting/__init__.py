"""sorting: what this room holds."""

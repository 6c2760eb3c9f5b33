"""inserting: what this room holds."""

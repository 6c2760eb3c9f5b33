"""creation: what this room holds."""

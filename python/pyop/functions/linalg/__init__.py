"""linalg: what this room holds."""

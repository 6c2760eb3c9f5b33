"""products: what this room holds."""

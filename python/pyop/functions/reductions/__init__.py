"""reductions: what this room holds."""

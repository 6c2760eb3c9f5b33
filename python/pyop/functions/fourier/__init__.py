"""fourier: what this room holds."""

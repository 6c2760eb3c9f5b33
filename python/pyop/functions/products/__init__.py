"""Group sums of products: dot, matmul, tensordot, einsum, outer, kron, cross."""

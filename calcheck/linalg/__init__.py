"""Linear algebra of Gram matrices: tiles, Cholesky, conjugate gradients, Nyström."""

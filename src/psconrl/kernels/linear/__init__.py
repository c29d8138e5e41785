"""Linear systems of Markov chains: elimination, Krylov methods, multigrid, sparse matrices."""

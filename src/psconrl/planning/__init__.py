"""Planning in a known (or sampled) CMDP: an oracle for weighted costs, a master that mixes its answers, a referee."""

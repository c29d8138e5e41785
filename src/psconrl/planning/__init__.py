"""Planning in a known or sampled CMDP: an oracle for weighted costs, a master problem that mixes its answers, an LP."""

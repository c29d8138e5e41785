"""Compile the kernels once, before several processes that run tests compile them several times over."""

import psconrl
from psconrl.learning.registry import RECIPES, make_agent

for env, options in (("marsrover-4x4", {}), ("queue", {}), ("garnet", {"sparse": True})):
    cmdp = psconrl.load(env, **options)
    psconrl.plan(cmdp)
    for name in RECIPES:
        if name != "span-fha" and env == "marsrover-4x4":  # which serves tiny models alone
            agent = make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, 0, 200)
            psconrl.simulate(cmdp, agent, 200, seed=0)

# What takes twice the precision, and what stays sparse.
LEAK = 1e-13
rooms = [[1 - LEAK, LEAK], [LEAK, 1 - LEAK]]
psconrl.plan(psconrl.CMDP(rooms, [[[0.2], [0.6]], [[1.0], [0.0]]], [0.5]))
psconrl.plan(psconrl.load("garnet", states=300, sparse=True))

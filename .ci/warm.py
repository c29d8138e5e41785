"""Compile the kernels once, before several processes that run tests compile them several times over."""

import psconrl
from psconrl.cli.warm import kernels
from psconrl.learning.registry import RECIPES, make_agent

for _, call in kernels():
    call()
cmdp = psconrl.load("marsrover-4x4")
for name in RECIPES:
    if name != "span-fha":  # which serves tiny models alone
        agent = make_agent(name, cmdp.n_states, cmdp.n_actions, cmdp.thresholds, cmdp.costs, 0, 200)
        psconrl.simulate(cmdp, agent, 200, seed=0)

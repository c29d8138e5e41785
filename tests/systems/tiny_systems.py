"""Tiny random systems, all of whose deterministic policies are evaluated by hand: a reference for plans of systems.

Every policy returns to state 0 with positive probability in every round. So all chains have one class, and the
reachable long-run frequencies of (state, action, outcome) are the convex hull of those of the deterministic policies.
"""

import itertools

import numpy as np
from scipy.optimize import linprog

from psconrl.systems.noise import Categorical
from psconrl.systems.system import System

S, A, W = 3, 2, 3


class Tiny:
    """A random system with costs c, d (positive) and e, and the frequencies (policies, S*A*W) of all its policies."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.next = rng.integers(0, S, size=(S, A, W))
        self.next[:, :, 0] = 0
        self.c, self.e = rng.integers(0, 6, size=(2, S, A, W)).astype(float)
        self.d = rng.integers(1, 4, size=(S, A, W)).astype(float)
        self.p = rng.dirichlet(np.full(W, 2.0))
        self.frequencies = np.array(
            [self._frequencies(policy).ravel() for policy in itertools.product(range(A), repeat=S)]
        )

    def _frequencies(self, policy):
        P = np.zeros((S, S))
        for s, w in itertools.product(range(S), range(W)):
            P[s, self.next[s, policy[s], w]] += self.p[w]
        equations = np.vstack([P.T - np.eye(S), np.ones(S)])
        stationary = np.linalg.lstsq(equations, np.append(np.zeros(S), 1.0), rcond=None)[0]
        found = np.zeros((S, A, W))
        for s in range(S):
            found[s, policy[s]] = stationary[s] * self.p
        return found

    def system(self, **statement) -> System:
        return System(
            state={"s": S},
            action={"a": A},
            noise={"w": Categorical(range(W), self.p)},
            step=lambda s, a, w: {"s": self.next[s, a, w]},
            costs={
                "c": lambda s, a, w: self.c[s, a, w],
                "d": lambda s, a, w: self.d[s, a, w],
                "e": lambda s, a, w: self.e[s, a, w],
            },
            **statement,
        )

    def averages(self, table):
        """Averages of a table (S, A, W) under all deterministic policies."""
        return self.frequencies @ np.asarray(table, dtype=float).ravel()

    def best(self, goal, *limits):
        """The least average of a table under limits (table, threshold) over all mixtures; None if infeasible."""
        rows = np.array([self.averages(table) for table, _ in limits]).reshape(len(limits), -1)
        n = len(self.frequencies)
        found = linprog(
            self.averages(goal), A_ub=rows if limits else None, b_ub=[tau for _, tau in limits] or None,
            A_eq=np.ones((1, n)), b_eq=[1.0],
        )  # fmt: skip
        return found.fun if found.status == 0 else None

    def best_ratio(self, top, bottom, *limits):
        """The least ratio of averages (Charnes and Cooper 1962: scale the mixture so that the denominator is one)."""
        rows = np.array([self.averages(table) - tau for table, tau in limits]).reshape(len(limits), -1)
        found = linprog(
            self.averages(top), A_ub=rows if limits else None, b_ub=np.zeros(len(limits)) if limits else None,
            A_eq=self.averages(bottom)[None], b_eq=[1.0],
        )  # fmt: skip
        return found.fun if found.status == 0 else None


def tail(x, level, share):
    """The cost whose average is the expected shortfall at the best level."""
    return level + np.maximum(x - level, 0.0) / (1.0 - share)

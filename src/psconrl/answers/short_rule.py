r"""Short rules: a policy as a few questions about the variables of the state, with its exact price.

A rule is a binary tree. Every question compares a variable, or the sum or difference of two, with a number; every leaf
plays one action, or an order up to a level. With the advantage :math:`A(s,a) \ge 0` of actions at the shadow prices of
the plan, a policy :math:`\sigma` with the stationary distribution :math:`\mu_\sigma` costs
:math:`\sum_s \mu_\sigma(s) A(s, \sigma(s))` more than the plan, at these prices. Trees are grown for a small sum, first
for the distribution of the plan, then for that of the tree found before. Then single questions and actions are
changed as long as that helps. Under a limit that binds, one question may be randomised at one number, just often enough
to keep the limit. Every tree is evaluated exactly.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from psconrl.answers.answer import Answer
from psconrl.answers.asking import answered
from psconrl.answers.rule_parts import Feature, Leaf, RuleParts
from psconrl.answers.stated_model import Asked
from psconrl.base.arrays import Floats, Ints
from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError
from psconrl.kernels.chains.occupancy import one_hot
from psconrl.markov.evaluation import Evaluation, evaluate_policy
from psconrl.model.cmdp import CMDP
from psconrl.model.matrix_product import product
from psconrl.model.names import Names
from psconrl.planning.deployable import Deployable
from psconrl.planning.plan import Plan
from psconrl.systems.system import System

DEEPEST_RULE = 6
BEAM, BEAM_OF_LARGE = 12, 4  # questions that are tried at every node, and for models with many states
ROUNDS = 3  # of growing a tree for the distribution of the one before
STRICTER = (1.0, 1.5, 3.0)  # factors of the shadow prices for which trees are grown
MOST_TRIES = 200  # evaluations of changed trees
UNVISITED_SHARE = 1e-6  # weight of a state that is never visited: the rule may visit it
ROUNDED_EXCESS = 1e-13  # of the range of a cost: a smaller excess is rounding
LEAST_GAIN = 1e-5  # of the mean absolute objective: a question, or an order up to a level, that gains less is left out
LEAST_GROWTH = 1e-3  # of that gain: trees are grown further, since single changes may make more of it
SAME_RULE = 1e-9  # relative: a rule that loses less is optimal
SHARE_HALVINGS = 30  # of the interval of a share
MANY_STATES = 300
SLOW_STATES = 3000  # from which on trees are not improved by single changes


@dataclass(frozen=True, eq=False)
class Question:
    """A question about the state, and what follows from the answer; ``below`` and ``above`` are questions or leaves.

    Where the feature is exactly ``beyond``, the next larger number, the answer is yes with probability ``share``.
    """

    feature: Feature
    at_most: float
    below: "Question | Leaf"
    above: "Question | Leaf"
    beyond: float = np.inf
    share: float = 0.0

    def __str__(self) -> str:
        if self.feature.condition:
            return self.feature.condition
        also = f", and at {self.beyond:g} with probability {self.share:.4g}," if self.share > 0 else ""
        return f"{self.feature.text} <= {self.at_most:g}{also}"

    def yes(self) -> Floats:
        """Return the probability of a yes in every state."""
        values = self.feature.values
        return np.where(values <= self.at_most, 1.0, np.where(values == self.beyond, self.share, 0.0))


Tree = Question | Leaf


@dataclass(frozen=True, eq=False)
class ShortRule(Deployable):
    """A rule in words, and what it costs; ``str`` returns both."""

    tree: Tree
    text: str
    value: float  # of the objective as stated
    averages: Mapping[str, float]  # of costs and limited quantities, as stated
    missed: tuple[str, ...]  # limits that the rule does not keep, in words
    loss: float  # by how much the objective is worse than any policy within the limits can be proven to be
    agreement: float  # share of rounds of the plan in which the rule does the same
    policy: Floats  # (S, A)
    occupancy: Floats  # (S, A)
    names: Names

    @property
    def feasible(self) -> bool:
        """Whether the rule keeps all limits."""
        return not self.missed

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON; what is not defined becomes None."""
        return {
            "rule": self.text,
            "value": self.value,
            "loss": self.loss,
            "agreement": self.agreement,
            "averages": {name: x if np.isfinite(x) else None for name, x in self.averages.items()},
            "missed": list(self.missed),
        }

    def __str__(self) -> str:
        best = abs(self.value) - self.loss if abs(self.value) > self.loss else abs(self.value) + self.loss
        size = f"{100 * self.loss / best:.3g}%" if best > 0 else f"{self.loss:.3g}"
        cost = f"{size} worse" if self.loss > SAME_RULE * max(1.0, abs(self.value)) else "optimal"
        if self.loss < 0 and self.missed:
            cost = f"{size.removeprefix('-')} better"
        misses = f"; does not keep {' and '.join(self.missed)}" if self.missed else ""
        end = "\n" if "\n" in self.text else ": "
        return f"{self.text}{end}as planned in {100 * self.agreement:.3g}% of rounds, {cost}{misses}"


def rule(asked: CMDP | System | Answer, depth: int = 3, best: Plan | None = None) -> ShortRule:
    """Return a short rule: at most ``depth`` questions about the state on every path. It keeps the limits if any does.

    ``asked``: a model whose states have numbers in their names, a system, or an answer. ``best``: the plan of the
    model, if it is known.

    >>> import psconrl
    >>> print(psconrl.rule(psconrl.load("queue"), depth=1).text)
    speed 0 open if waiting <= 1, and at 2 with probability 0.9843, else speed 1 closed
    """
    if not isinstance(depth, int) or not 0 <= depth <= DEEPEST_RULE:
        raise ConfigError(f"depth must be a whole number from 0 to {DEEPEST_RULE}; got {quoted(depth)}")
    answer = answered(asked, "rule", best)
    question, plan, model = answer.asked, answer.plan, answer.model
    search = _RuleSearch(question, model, plan)
    tree = search.best(0)
    for deeper in range(1, depth + 1):
        if not search.is_optimal(tree):
            tree = search.shorter_of(tree, search.best(deeper))
    policy = search.policy(tree)
    exact = search.evaluate(tree)
    averages = answer.averages_of(exact.occupancy)
    value = averages[question.statement.goal.text]
    unkept = [limit for limit in question.statement.requirements if not limit.is_kept(averages[limit.name])]
    missed = tuple(f"{limit} ({averages[limit.name]:.6g})" for limit in unkept)
    return ShortRule(
        tree, shown_tree(tree), value, averages, missed,
        answer.bound - value if question.statement.maximises else value - answer.bound,
        float(np.minimum(plan.shown_policy, policy).sum(axis=1) @ plan.occupancy.sum(axis=1)), policy,
        exact.occupancy, model.names,
    )  # fmt: skip


def shown_tree(tree: Tree, indent: str = "") -> str:
    """Return a tree in words: one line for one question, else indented lines."""
    if isinstance(tree, Leaf):
        return indent + tree.text
    if not indent and isinstance(tree.below, Leaf) and isinstance(tree.above, Leaf):
        return f"{tree.below.text} if {str(tree).removesuffix(',')}, else {tree.above.text}"
    deeper = indent + "    "
    question = str(tree).removesuffix(",")
    return f"{indent}if {question}:\n{shown_tree(tree.below, deeper)}\n{indent}else:\n{shown_tree(tree.above, deeper)}"


class _RuleSearch:
    """Grows trees and evaluates them."""

    def __init__(self, asked: Asked, model: CMDP, plan: Plan) -> None:
        self.model, self.plan = model, plan
        self.parts = RuleParts(asked, model.available)
        exact = evaluate_policy(model, plan.policy)
        q, S, A = model.costs.shape
        moved = (model.transition @ exact.biases.T).T.reshape(q, S, A)
        self.advantages = model.costs - exact.gains[:, :, None] + moved - exact.biases[:, :, None]
        self.small = LEAST_GAIN * float(np.abs(model.costs[0] * plan.occupancy).sum())
        self.budget = 0
        self.tried: dict[bytes, Evaluation] = {}
        self.size = np.maximum(np.abs(model.thresholds), np.ptp(model.costs[1:], axis=(1, 2)))

    def best(self, depth: int) -> Tree:
        """Return the best tree found of some depth."""
        self.budget = len(self.tried) + MOST_TRIES
        found: list[Tree] = []
        for factor in STRICTER if self.model.n_constraints else STRICTER[:1]:
            prices = np.concatenate([[1.0], factor * self.plan.multipliers])
            worth = product(prices, self.advantages.reshape(prices.size, -1)).reshape(self.model.available.shape)
            mass = self.plan.occupancy.sum(axis=1)
            for _ in range(ROUNDS):
                tree = self._grown(self._losses(worth, mass), np.arange(mass.size), depth)[1]
                before = len(self.tried)
                exact = self.evaluate(tree)
                found.append(tree)
                if len(self.tried) == before:
                    break
                mass = (mass + exact.occupancy.sum(axis=1)) / 2
        tree = min(found, key=self._score)
        if self.model.n_states > SLOW_STATES:
            return self._shortened(tree)
        return self._randomised(self._shortened(self._changed_singly(tree)))

    def _losses(self, worth: Floats, mass: Floats) -> Floats:
        """Return what every leaf loses in every state, (S, leaves)."""
        weight = mass + UNVISITED_SHARE / mass.size
        return np.asarray(np.take_along_axis(worth, self.parts.choices, axis=1) * weight[:, None])

    def _grown(self, losses: Floats, states: Ints, depth: int) -> tuple[float, Tree]:
        """Return the least loss of a tree for some states, and the tree."""
        total = losses[states].sum(axis=0) + self.small * (np.arange(losses.shape[1]) >= self.model.n_actions)
        k = int(total.argmin())
        best: tuple[float, Tree] = (float(total[k]), self.parts.leaves[k])
        if depth == 0 or states.size < 2:
            return best
        beam = BEAM_OF_LARGE if self.model.n_states > MANY_STATES else BEAM
        splits = sorted(self._splits(losses, states), key=lambda split: float(f"{split[0]:.9g}"))
        for loss, feature, at_most in splits[: beam if depth > 1 else 1]:
            if loss >= best[0] and depth == 1:
                break
            inside = feature.values[states] <= at_most
            below = self._grown(losses, states[inside], depth - 1)
            above = self._grown(losses, states[~inside], depth - 1)
            if below[0] + above[0] < best[0] - LEAST_GROWTH * self.small and below[1] is not above[1]:
                best = (below[0] + above[0], Question(feature, at_most, below[1], above[1]))
        return best

    def _splits(self, losses: Floats, states: Ints) -> Iterator[tuple[float, Feature, float]]:
        """Yield all questions, with the loss if there were no others."""
        for feature in self.parts.features:
            values = feature.values[states]
            order = np.argsort(values, kind="stable")
            ordered = values[order]
            ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
            if not ends.size:
                continue
            sums = np.add.reduceat(losses[states[order]], np.concatenate([[0], ends]), axis=0)
            upto = np.cumsum(sums, axis=0)
            loss = upto[:-1].min(axis=1) + (upto[-1] - upto[:-1]).min(axis=1)
            yield from zip(loss.tolist(), repeat(feature), ordered[ends - 1].tolist(), strict=False)

    def policy(self, tree: Tree) -> Floats:
        """Return the policy (S, A) of a tree."""
        if isinstance(tree, Leaf):
            played: Floats = one_hot(np.ascontiguousarray(self.parts.choices[:, tree.number]), self.model.n_actions)
            return played
        yes = tree.yes()[:, None]
        return np.asarray(yes * self.policy(tree.below) + (1.0 - yes) * self.policy(tree.above))

    def evaluate(self, tree: Tree) -> Evaluation:
        """Return the exact averages of a tree."""
        policy = self.policy(tree)
        key = policy.tobytes()
        if key not in self.tried:
            self.tried[key] = evaluate_policy(self.model, policy)
        return self.tried[key]

    def _score(self, tree: Tree) -> tuple[float, float]:
        """Return the largest excess, zero if there is none, and the objective."""
        costs = self.evaluate(tree).costs
        excess = np.maximum((costs[1:] - self.model.thresholds) / np.maximum(self.size, 1e-300), 0.0)
        worst = float(excess.max(initial=0.0))
        return (worst if worst > ROUNDED_EXCESS else 0.0), float(costs[0])

    def _changed_singly(self, tree: Tree) -> Tree:
        """Change one question or one leaf at a time as long as that helps."""
        improved = True
        while improved and len(self.tried) < self.budget:
            improved = False
            for other in self._neighbours(tree):
                if len(self.tried) >= self.budget:
                    break
                if self._score(other) < self._score(tree):
                    tree, improved = other, True
                    break
        return tree

    def is_optimal(self, tree: Tree) -> bool:
        """Whether a tree is as good as the plan."""
        excess, value = self._score(tree)
        return excess == 0.0 and value <= float(self.plan.costs[0]) + SAME_RULE * max(1.0, abs(value))

    def shorter_of(self, short: Tree, long: Tree) -> Tree:
        """Return the longer tree if it is better by a gain that counts, else the shorter one."""
        excess, value = self._score(short)
        return long if self._score(long) < (excess, value - self.small) else short

    def _shortened(self, tree: Tree) -> Tree:
        """Leave out questions without which the rule is as good."""
        for shorter in self._shorter(tree):
            if self.shorter_of(shorter, tree) is shorter:
                return self._shortened(shorter)
        return tree

    def _shorter(self, tree: Tree) -> Iterator[Tree]:
        if isinstance(tree, Question):
            yield from (tree.below, tree.above)
            yield from (replace(tree, below=other) for other in self._shorter(tree.below))
            yield from (replace(tree, above=other) for other in self._shorter(tree.above))

    def _randomised(self, tree: Tree) -> Tree:
        """Randomise one question at one number, if the tree keeps the limits and that improves it."""
        if self._score(tree)[0] > 0:
            return tree
        best = tree
        for question in self._moved(tree):
            certain = [self._score(question(share)) for share in (0.0, 1.0)]
            if (certain[0][0] > 0) == (certain[1][0] > 0):
                continue
            kept, missed = (1.0, 0.0) if certain[0][0] > 0 else (0.0, 1.0)
            for _ in range(SHARE_HALVINGS):
                middle = (kept + missed) / 2
                if self._score(question(middle))[0] > 0:
                    missed = middle
                else:
                    kept = middle
            best = min(best, question(kept), key=self._score)
        return best

    def _moved(self, tree: Tree) -> Iterator[Callable[[float], Tree]]:
        """Yield functions of a share: the tree with one question randomised at its number, or at the next."""
        if isinstance(tree, Leaf):
            return
        values = np.unique(tree.feature.values)
        place = int(np.searchsorted(values, tree.at_most))
        for k in (place - 1, place):
            if 0 <= k < values.size - 1:
                low, high = float(values[k]), float(values[k + 1])
                yield partial(_with_share, tree, low, high)
        for side in ("below", "above"):
            for inner in self._moved(getattr(tree, side)):
                yield partial(_with_branch, tree, side, inner)

    def _neighbours(self, tree: Tree) -> Iterator[Tree]:
        if isinstance(tree, Leaf):
            yield from self.parts.beside(tree)
            return
        values = np.unique(tree.feature.values)
        place = int(np.searchsorted(values, tree.at_most))
        for k in (place - 1, place + 1):
            if 0 <= k < values.size - 1:
                yield replace(tree, at_most=float(values[k]))
        yield from (replace(tree, below=other) for other in self._neighbours(tree.below))
        yield from (replace(tree, above=other) for other in self._neighbours(tree.above))


def _with_share(question: Question, low: float, high: float, share: float) -> Tree:
    return replace(question, at_most=low, beyond=high, share=share)


def _with_branch(question: Question, side: str, inner: Callable[[float], Tree], share: float) -> Tree:
    return replace(question, below=inner(share)) if side == "below" else replace(question, above=inner(share))

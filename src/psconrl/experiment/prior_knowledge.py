"""What an agent is told beforehand: possible transitions, a model and its worth, a safe policy, constants of theory.

The same words on the command line, ``--support``, ``--trust``, ``--worth`` and ``--baseline``, and in a spec,
``support``, ``trust``, ``worth`` and ``baseline``; ``spans`` in a spec alone: theory that needs spans and a Slater gap
gets those of the true model.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from psconrl.envs.registry import load
from psconrl.errors import ConfigError
from psconrl.learning.baseline import known_baseline
from psconrl.learning.checks import need_all_actions
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.registry import recipe_for
from psconrl.learning.sampler import trusted
from psconrl.model.cmdp import CMDP
from psconrl.planning.analysis.inspection import spans_of
from psconrl.planning.analysis.pareto import cost_ranges
from psconrl.planning.plan import Plan
from psconrl.planning.planner import plan
from psconrl.planning.proof import Status

SAFEST = "safest"  # of the policies of a model: the one farthest below its limits
# The options that say the same, and would contradict it.
SAID_BY = ("belief", "cost_weight", "guessed_costs", "prior", "support")
CONSTANTS = ("span", "span_objective", "span_limited", "gap")  # options with what the theory of an agent must know


@dataclass(frozen=True)
class Knowledge:
    """What is told; nothing by default. ``dashes``: in front of the words, for errors on the command line."""

    support: bool = False
    trust: str = ""  # the name or the file of a model
    worth: float | None = None  # visits of every pair that the model is worth; None: learned
    baseline: str = ""  # "safest", or the file of a plan
    spans: bool = False  # the spans of the optimal policy's biases and the Slater gap, as far as it asks for them
    file: str = ""  # digest of the file of the model or the plan, if it is one, as it was when this was made
    dashes: str = ""

    def __post_init__(self) -> None:
        mark = self.dashes
        if self.worth is not None and not self.trust:
            raise ConfigError(f"{mark}worth says how much the model of {mark}trust is worth; give that too")
        if self.support and self.trust:
            raise ConfigError(
                f"give {mark}support or {mark}trust, not both: a model that is trusted says what is possible"
            )
        if self.baseline and (self.support or self.trust):
            raise ConfigError(f"give {mark}baseline or {mark}{'support' if self.support else 'trust'}, not both")

    def __bool__(self) -> bool:
        return self.support or bool(self.trust or self.baseline) or self.spans

    @property
    def word(self) -> str:
        """By which it is told."""
        told = {"support": self.support, "trust": self.trust, "baseline": self.baseline, "spans": self.spans}
        return self.dashes + next(word for word, given in told.items() if given)

    def need_believer(self, agent: str, chosen: Collection[str]) -> None:
        """Refuse an agent that cannot be told, or was told otherwise by its options."""
        if not self:
            return
        names, believes = recipe_for(agent).option_names(), self.support or self.trust
        if self.baseline and "slack" not in names:
            raise ConfigError(f"{self.word}: agent {agent!r} has no baseline with a slack; 'safe' has")
        if self.spans and ("slack" in names or not set(CONSTANTS) & set(names)):
            raise ConfigError(f"spans: agent {agent!r} asks for none of the optimal policy's {', '.join(CONSTANTS)}")
        if believes and "belief" not in recipe_for(agent).slots:
            raise ConfigError(f"{self.word}: agent {agent!r} has no belief that could be told")
        said = SAID_BY if believes else CONSTANTS if self.spans else ("baseline",)
        for option in sorted(set(said) & set(chosen)):
            raise ConfigError(f"{self.dashes}option {option} and {self.word} contradict each other")

    def options(self, cmdp: CMDP, agent: str) -> dict[str, Any]:
        """The same as options of an agent that is to learn a model; of a baseline what is true of it there."""
        if self.spans:
            return _true_constants(cmdp, agent)
        if self.baseline:
            return known_baseline(cmdp, None if self.baseline == SAFEST else Plan.load(self.baseline))
        if self.trust:
            model = load(self.trust)
            sizes, theirs = ((m.n_states, m.n_actions, m.n_constraints) for m in (cmdp, model))
            if sizes != theirs:
                raise ConfigError(f"{self.word}: {self.trust} has (S, A, m) = {theirs}, what is to be learned {sizes}")
            return trusted(model, self.worth)
        if self.support:
            need_all_actions(cmdp.available)
            possible = cmdp.transition.csr().copy()
            possible.data[:] = 1.0
            return {"belief": LearnedMass(support=possible)}
        return {}


def _true_constants(cmdp: CMDP, agent: str) -> dict[str, Any]:
    """Of those that an agent asks for, the true ones."""
    best = plan(cmdp)
    if best.status is Status.INFEASIBLE:
        raise ConfigError("spans: the limits of the model cannot be met, so there is no optimal policy to speak of")
    spans = spans_of(cmdp, best)
    known: dict[str, Any] = {"span": spans[1:].tolist(), "span_objective": float(spans[0])}
    if cmdp.n_constraints == 1:
        least = float(cost_ranges(cmdp)[1, 0])
        known |= {"span_limited": float(spans[1]), "gap": float(cmdp.thresholds[0]) - least}
    return {name: known[name] for name in recipe_for(agent).option_names() if name in known}


NOTHING = Knowledge()

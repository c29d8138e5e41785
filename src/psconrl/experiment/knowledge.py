"""What an agent is told beforehand: which transitions are possible, a model and what that is worth, a safe policy.

The same words on the command line, ``--support``, ``--trust``, ``--worth`` and ``--baseline``, and in a spec,
``support``, ``trust``, ``worth`` and ``baseline``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from psconrl.envs.registry import load
from psconrl.errors import ConfigError
from psconrl.learning.baseline import known_baseline
from psconrl.learning.checks import need_all_actions
from psconrl.learning.parts.learned_mass import LearnedMass
from psconrl.learning.registry import recipe_for
from psconrl.learning.sampler import trusted
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan

SAFEST = "safest"  # of the policies of a model: the one farthest below its limits
# The options that say the same, and would contradict it.
SAID_BY = ("belief", "cost_weight", "guessed_costs", "prior", "support")


@dataclass(frozen=True)
class Knowledge:
    """What is told; nothing by default. ``dashes``: in front of the words, for errors on the command line."""

    support: bool = False
    trust: str = ""  # the name or the file of a model
    worth: float | None = None  # visits of every pair that the model is worth; None: learned
    baseline: str = ""  # "safest", or the file of a plan
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
        return self.support or bool(self.trust or self.baseline)

    @property
    def word(self) -> str:
        """By which it is told."""
        return self.dashes + ("support" if self.support else "trust" if self.trust else "baseline")

    def need_believer(self, agent: str, chosen: Collection[str]) -> None:
        """Refuse an agent that cannot be told, or was told otherwise by its options."""
        if self.baseline:
            self._need_baseline(agent, chosen)
            return
        if self and "belief" not in recipe_for(agent).slots:
            raise ConfigError(f"{self.word}: agent {agent!r} has no belief that could be told")
        for option in sorted(set(SAID_BY) & set(chosen)) if self else ():
            raise ConfigError(f"{self.dashes}option {option} and {self.word} contradict each other")

    def _need_baseline(self, agent: str, chosen: Collection[str]) -> None:
        if "slack" not in recipe_for(agent).option_names():
            raise ConfigError(f"{self.word}: agent {agent!r} has no baseline with a slack; 'safe' has")
        if "baseline" in chosen:
            raise ConfigError(f"{self.dashes}option baseline and {self.word} contradict each other")

    def options(self, cmdp: CMDP) -> dict[str, Any]:
        """The same as options of an agent that is to learn a model; of a baseline what is true of it there."""
        if self.baseline:
            plan = None if self.baseline == SAFEST else Plan.load(self.baseline)
            return known_baseline(cmdp, plan)
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


NOTHING = Knowledge()

"""Prior knowledge given to an agent: possible transitions, a model and its worth, a safe policy, constants of theory.

The command line has the options ``--support``, ``--trust``, ``--worth``, ``--baseline`` and ``--structure``. A spec has
the keys ``support``, ``trust``, ``worth``, ``baseline`` and ``structure``, and also ``true_constants``, which gives an
agent the constants of the true model that its theory assumes, such as spans and a Slater gap, and ``candidates``, which
gives it finitely many models of which one is true.
"""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.envs.registry import load
from psconrl.errors import ConfigError
from psconrl.experiment.true_constants import need_assumed, true_constants
from psconrl.learning.argument_checks import need_all_actions
from psconrl.learning.posterior.candidates import Candidates
from psconrl.learning.posterior.learned_mass import LearnedMass
from psconrl.learning.posterior.noise_posterior import Structured
from psconrl.learning.registry import recipe_for
from psconrl.learning.safe.baseline import baseline_policy, known_baseline
from psconrl.learning.sampler import trusted
from psconrl.model.cmdp import CMDP
from psconrl.planning.plan import Plan
from psconrl.systems.system import System

SAFEST = "safest"  # the policy of a model that is farthest below its thresholds
# Options that set the prior too, and so would contradict the prior knowledge.
SAID_BY = ("belief", "cost_weight", "guessed_costs", "prior", "support")


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge given to an agent; none by default.

    ``dashes``: put in front of the words in error messages, for the command line.
    """

    support: bool = False
    trust: str = ""  # the name or the file of a model
    worth: float | None = None  # the number of visits of every pair that the model counts for; None: learned
    baseline: str = ""  # "safest", or the file of a plan
    structure: bool = False  # a System's, of which only the parameters of its noise are unknown
    true_constants: bool = False  # those that the agent's theory assumes
    candidates: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # options of the environment, with their possible values
    file: str = ""  # digest of the file of the model or the plan, if any, when this was made
    dashes: str = ""

    def __post_init__(self) -> None:
        mark = self.dashes
        if self.worth is not None and not self.trust:
            raise ConfigError(f"{mark}worth says how much the model of {mark}trust is worth; give that too")
        if self.support and self.trust:
            raise ConfigError(
                f"give {mark}support or {mark}trust, not both: a trusted model already says what is possible"
            )
        if self.structure and (self.support or self.trust):
            raise ConfigError(
                f"give {mark}structure without {mark}{'support' if self.support else 'trust'}: it says what is "
                "possible, and what it costs"
            )
        if self.baseline and (self.support or self.trust):
            raise ConfigError(f"give {mark}baseline or {mark}{'support' if self.support else 'trust'}, not both")
        if self.candidates and len(self._given) > 1:
            other = next(word for word in self._given if word != "candidates")
            raise ConfigError(f"give candidates or {other}, not both: candidates are all that is known")

    def __bool__(self) -> bool:
        return bool(self._given)

    @property
    def _given(self) -> list[str]:
        """The keys that are given, of those that stand by themselves."""
        words: dict[str, Any] = {"support": self.support, "trust": self.trust, "baseline": self.baseline}
        words |= {"structure": self.structure, "true_constants": self.true_constants, "candidates": self.candidates}
        return [word for word, given in words.items() if given]

    @property
    def word(self) -> str:
        """The key or option that gives this knowledge."""
        return self.dashes + self._given[0]

    def need_believer(self, agent: str, chosen: Collection[str]) -> None:
        """Raise an error if the agent cannot use this knowledge, or if its options contradict it."""
        if not self:
            return
        names, mark = recipe_for(agent).option_names(), self.dashes
        if self.structure:
            self._need_structured(agent, "slack" in names and "baseline" not in chosen)
        if self.baseline and "baseline" not in names:
            raise ConfigError(f"{mark}baseline: agent {quoted(agent)} has no baseline; 'safe' and 'c-ucrl' have")
        if self.true_constants:
            need_assumed(agent, chosen)
        sets_belief = bool(self.support or self.trust or self.candidates)
        if sets_belief and recipe_for(agent).slots.get("belief") is None:
            raise ConfigError(f"{self.word}: agent {quoted(agent)} has no prior belief to set")
        said = dict.fromkeys(SAID_BY if sets_belief else (), self.word)
        said |= dict.fromkeys(SAID_BY, f"{mark}structure") if self.structure else {}
        said |= {"baseline": f"{mark}baseline"} if self.baseline else {}
        for option in sorted(set(said) & set(chosen)):
            raise ConfigError(f"{mark}option {option} and {said[option]} contradict each other")

    def _need_structured(self, agent: str, needs_baseline: bool) -> None:
        """Raise an error if the agent cannot know the structure of a system, or not without a baseline."""
        if "belief" not in recipe_for(agent).slots:
            raise ConfigError(
                f"{self.dashes}structure: agent {quoted(agent)} cannot use a system; the posterior samplers and "
                "'safe' can"
            )
        if needs_baseline and not self.baseline:
            raise ConfigError(
                f"agent {quoted(agent)} needs a policy that is known to be safe: {self.dashes}baseline, safest or "
                "the .npz file of a plan"
            )

    def options(self, cmdp: CMDP, agent: str, *, known_costs: bool, emission: str) -> dict[str, Any]:
        """Return this knowledge as options of an agent on the model ``cmdp``, whose costs it knows or not.

        For a baseline with a slack these are its true values on the model. An agent without the option ``slack`` needs
        none: a baseline that meets the constraints is enough.
        """
        if self.true_constants:
            return true_constants(cmdp, agent, known_costs=known_costs, emission=emission)
        if self.baseline:
            if "slack" in recipe_for(agent).option_names():
                return known_baseline(cmdp, self._given_baseline(), emission=emission)
            return {"baseline": baseline_policy(cmdp, self._given_baseline())}
        if self.trust:
            model = load(self.trust)
            sizes, theirs = ((m.n_states, m.n_actions, m.n_constraints) for m in (cmdp, model))
            if sizes != theirs:
                raise ConfigError(f"{self.word}: {self.trust} has (S, A, m) = {theirs}, the environment {sizes}")
            return trusted(model, self.worth)
        if self.support:
            need_all_actions(cmdp.available)
            possible = cmdp.transition.csr().copy()
            possible.data[:] = 1.0
            return {"belief": LearnedMass(support=possible)}
        return {}

    def options_in_system(self, system: System, cmdp: CMDP, agent: str) -> dict[str, Any]:
        """Return the options of an agent that knows the system, and a baseline if there is one.

        ``cmdp``: the model with the true values of the unknown parameters.
        """
        found = known_structure(system, cmdp, agent)
        if self.baseline:
            found |= known_baseline(cmdp, self._given_baseline(), by_state=True)
            del found["ranges"]  # the system determines them
        return found

    def finite_prior(self, env: str, env_options: Mapping[str, Any]) -> Candidates:
        """Return the belief that one of the candidates is true, all with the same probability.

        They are the models of an environment with all combinations of the values that are possible.
        """
        names = [name for name, _ in self.candidates]
        points = itertools.product(*(values for _, values in self.candidates))
        chosen = [{**env_options, **dict(zip(names, point, strict=True))} for point in points]
        return Candidates([load(env, **options).transition.csr() for options in chosen])

    def _given_baseline(self) -> Plan | None:
        """Return the plan of the baseline; None for the safest policy."""
        return None if self.baseline == SAFEST else Plan.load(self.baseline)


def known_structure(system: System, model: CMDP, agent: str) -> dict[str, Any]:
    """Return the options of an agent that knows a system, except for the unknown parameters of its noise."""
    structure = system.structure
    if (structure.n_states, structure.n_actions) != (model.n_states, model.n_actions):
        raise ConfigError(
            f"structure: {structure.n_states} states can be reached if the parameters are unknown, and "
            f"{model.n_states} with their values, since some outcomes have no probability; choose other values"
        )
    return {"belief": Structured.of(system), **recipe_for(agent).parts_for_systems}


NOTHING = Knowledge()

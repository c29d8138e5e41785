"""The system that describes a log, its posterior, and the names in which both speak to the user."""

from collections.abc import Mapping
from typing import Any

from psconrl.answers.asking import linear
from psconrl.base.escaping import quoted
from psconrl.data.posterior.limits import system_with
from psconrl.data.posterior.noise_posterior import NoisePosterior
from psconrl.data.posterior.row_posterior import Posterior, RowPosterior
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import LogError
from psconrl.model.units import Units
from psconrl.systems.system import System


def system_for(log: Recorded, system: System | None, limits: Mapping[str, float] | None = None) -> System | None:
    """Return the system that describes a log, with other limits: the one given, or the one the log was read with.

    A log that was read without a system has numbers of states of its own, and a limit on a ratio is a cost of its own,
    so that another system needs another reading.
    """
    if system is not None and not isinstance(system, System):
        raise LogError(f"system must be a System; got {quoted(system)}")
    chosen = log.system if system is None else system
    if chosen is None:
        return None
    if log.system is None:
        raise LogError("the log was read without a system; read it with Log(table, system=...)")
    if log.system is not chosen and (log.system.state_names, log.system.action_names) != (
        chosen.state_names,
        chosen.action_names,
    ):
        raise LogError("the log was read with another system; read it with Log(table, system=...) and this one")
    changed = system_with(chosen, limits)
    if tuple(changed.shown_names) != log.cost_names:
        own, its = ", ".join(log.cost_names), ", ".join(changed.shown_names)
        raise LogError(
            f"the log was read with the costs {own}, and the system has {its}; read it with Log(table, system=...) and "
            "the system with these limits"
        )
    return changed


def posterior_of(log: Recorded, system: System | None) -> Posterior:
    """Return the posterior of a log: over the noise of its system, or over its rows."""
    if system is not None:
        return NoisePosterior(log, system)
    need_costs(log)
    return RowPosterior(log)


def need_costs(log: Recorded) -> None:
    """Raise an error unless the log has costs."""
    if not log.cost_names or log.costs is None:
        raise LogError("the log has no costs; read it with Log(table, costs=[...]), the objective first")


def units_of(system: System | None) -> Units:
    """Return the units of the costs of a log, by the names that are shown."""
    return Units() if system is None else linear(system).model_for_learning().units


def shown_state(log: Recorded, number: int) -> str:
    """Return a state in words: "shelf=3" also where the label is the value of a single column."""
    return _shown(log.state_labels[number], log.state_columns, log.system)


def shown_action(log: Recorded, number: int) -> str:
    """Return an action in words."""
    return _shown(log.action_labels[number], log.action_columns, log.system)


def _shown(label: str, columns: tuple[str, ...], system: Any) -> str:
    return f"{columns[0]}={label}" if system is None and len(columns) == 1 else label

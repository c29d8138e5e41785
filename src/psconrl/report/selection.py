"""Selection of the experiments and agents of a results file to show, their order and their names."""

from collections.abc import Sequence
from dataclasses import replace

from psconrl.base.escaping import quoted
from psconrl.errors import ConfigError, unknown_name
from psconrl.report.curves import Experiment


def select(
    experiments: Sequence[Experiment],
    names: Sequence[str] = (),
    agents: Sequence[str] = (),
    renames: Sequence[str] = (),
) -> list[Experiment]:
    """Return the named experiments with the named agents, in the order given; all of them if none is named.

    A text in ``names`` and ``agents`` may hold several names, separated by commas. ``renames`` are ``LABEL=NAME``, for
    agents and experiments.
    """
    experiments = [e for e in experiments if e.curves]
    if not experiments:
        raise ConfigError("there is nothing to show: no finished runs")
    by_name = {e.name: e for e in experiments}
    chosen = [by_name[name] for name in _listed("experiment", names, by_name)] if names else list(experiments)
    labels = list(dict.fromkeys(label for e in chosen for label in e.curves))
    wanted = _listed("agent", agents, labels) if agents else labels
    titles = _titles(renames, [*labels, *by_name])
    shown = []
    for e in chosen:
        kept = {x: replace(e.curves[x], title=titles.get(x, e.curves[x].title)) for x in wanted if x in e.curves}
        if kept:
            lacking = (each for each in e.unfinished if not agents or each.label in wanted)
            renamed = tuple(each._replace(title=titles.get(each.label, each.title)) for each in lacking)
            shown.append(replace(e, curves=kept, title=titles.get(e.name, e.title), unfinished=renamed))
    return shown


def _listed(kind: str, given: Sequence[str], known: Sequence[str] | dict[str, Experiment]) -> list[str]:
    """Return the names in a list of comma-separated lists. A name may contain commas: a known text is one name."""
    found = []
    for text in given:
        for name in [text] if text in known else [part.strip() for part in text.split(",") if part.strip()]:
            if name not in known:
                raise ConfigError(unknown_name(kind, name, known))
            found.append(name)
    if not found:
        raise ConfigError(f"at least one {kind} must be named; known: {', '.join(known)}")
    return list(dict.fromkeys(found))


def _titles(renames: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return new names by label. A label may contain equals signs: the longest known label counts."""
    titles = {}
    for text in renames:
        label = max((x for x in known if text.startswith(f"{x}=")), key=len, default=None)
        if label is None:
            given, equals, _ = text.partition("=")
            why = (
                unknown_name("agent or experiment", given, known)
                if equals
                else f"must be LABEL=NAME; got {quoted(text)}"
            )
            raise ConfigError(f"--rename: {why}")
        titles[label] = text.removeprefix(f"{label}=").strip()
        if not titles[label]:
            raise ConfigError(f"--rename: {label} needs a name")
    return titles

"""Limits on the costs of a log, as its reader states them: by name, in the units of the table."""

from collections.abc import Mapping, Sequence

import numpy as np

from psconrl.answers.asking import linear
from psconrl.base.arrays import Floats
from psconrl.base.escaping import quoted
from psconrl.data.rounds.recorded import Recorded
from psconrl.errors import LogError, unknown_name
from psconrl.learning.argument_checks import as_number
from psconrl.systems.system import System


def limited(log: Recorded, limits: Mapping[str, float] | None) -> tuple[Recorded, Floats]:
    """Return a log of the objective and the limited costs, and their thresholds (m,) as in a model.

    A reward, whose sign is -1, has a limit from below.

    >>> from psconrl.data.log import Log
    >>> log = Log({"at": [0, 1, 0], "do": [0, 0, 1], "a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}, state="at",
    ...     action="do", costs=["a", "b", "c"])
    >>> kept, thresholds = limited(log, {"c": 8.5})
    >>> kept.cost_names, thresholds.tolist()
    (('a', 'c'), [8.5])
    """
    given = {} if limits is None else limits
    if not isinstance(given, Mapping):
        raise LogError(f"limits must be a table of costs and their limits, {{'lost': 0.1}}; got {quoted(limits)}")
    for name in given:
        if name not in log.cost_names[1:]:
            raise LogError(f"limits: {unknown_name('cost', name, log.cost_names[1:])}")
    rows = [0, *(i for i, name in enumerate(log.cost_names) if i and name in given)]
    values = [as_number(given[log.cost_names[i]], f"the limit of {quoted(log.cost_names[i])}") for i in rows[1:]]
    return with_costs(log, rows), np.array(values, dtype=np.float64) * log.signs[rows[1:]]


def with_costs(log: Recorded, rows: Sequence[int]) -> Recorded:
    """Return a log with some of its costs."""
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__}
    fields |= {"cost_names": tuple(log.cost_names[i] for i in rows), "signs": log.signs[list(rows)]}
    fields["costs"] = None if log.costs is None else log.costs[:, list(rows)]
    return Recorded.of_arrays(**fields)


def system_with(system: System, limits: Mapping[str, float] | None) -> System:
    """Return a system as it is planned, with other limits."""
    changed = system if limits is None else system.with_thresholds(limits)
    return linear(changed)

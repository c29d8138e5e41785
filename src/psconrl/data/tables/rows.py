"""What is known of the rows of a table besides their columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools
from psconrl.base.escaping import quoted
from psconrl.errors import LogError

Indices: TypeAlias = NDArray[np.signedinteger[Any]]
"""Whole numbers, in as few bytes as they need."""

COLUMNS_READ = 1_000


@dataclass(frozen=True, eq=False)
class TableRows:
    """The line of every row, which rows have more or fewer cells than the header, and lines that repeat the header."""

    lines: Indices
    ragged: Bools
    repeated: Indices


def need_columns(names: Sequence[str]) -> None:
    """Raise an error if a table has too many columns, or two of the same name."""
    if len(names) > COLUMNS_READ:
        raise LogError(
            f"the table has {len(names):,} columns, more than {COLUMNS_READ:,}; keep those of states, actions, costs, "
            "runs and times, and what else may matter"
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise LogError(f"the table has two columns {quoted(twice[0])}")

"""Small models with every kind of field, as files that two readers must read alike."""

import io
import json
from contextlib import suppress
from functools import cache

import numpy as np
from scipy.sparse import csr_array

from damage.archives import bomb_added
from damage.formats import FORMATS
from damage.raw import CHANGES as RAW
from psconrl import CMDP
from psconrl.model.io import _to_json, write_npz
from psconrl.model.layout import GridLayout

OPTIONAL = ("thresholds", "initial", "cost_names", "maximise", "version", "format")


@cache
def samples():
    """Models with every kind of field."""
    P = np.array([[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]])
    table = np.array([[0.0, 1.0], [2.0, 0.5]])
    by_next = np.array([[[0.0, 1.0], [2.0, 3.0]], [[1.0, 5.0], [0.1, -0.3]]])
    mask = np.array([[True, True], [True, False]])
    sparse = csr_array(P.reshape(4, 2))
    named = {
        "state_names": ["calm", "busy"], "action_names": ["wait", "go"], "cost_names": ["pay", "served", "risk"],
        "maximise": True, "at_least": ["served"], "layout": GridLayout(("S.",), ((0, 0), (0, 1)), ("a", "b")),
        "units": {"round": "hour", "counted": {"pay": "euro"}, "levels": {"risk": "per cent"}},
    }  # fmt: skip
    return [
        CMDP(P, [table]),
        CMDP(P, [table, by_next], [1.5], initial=[0.5, 0.5]),
        CMDP(sparse, [by_next, table], [1.0], available=mask),
        CMDP(P, [table, table, by_next], [1.0, 2.0], available=mask, **named),
        CMDP(sparse, [table, csr_array(by_next.reshape(4, 2)), table], [1.0, 0.5], initial=1),
        CMDP(csr_array(np.eye(3)[[1, 2, 0]]), [np.array([[1.0], [2.0], [3.0]])]),
    ]


def drawn_file(rng):
    """Return the ending and the content of the file of a model; one in JSON may lack what need not be stated."""
    model = samples()[rng.integers(len(samples()))]
    if rng.random() < 0.5:
        written = io.BytesIO()
        write_npz(model, written)
        return ".npz", written.getvalue()
    record = _to_json(model)
    for name in OPTIONAL:
        if rng.random() < 0.2:
            del record[name]
    if rng.random() < 0.3 and record.get("outcome_costs"):  # tables by next state, in the place of the costs
        for i, outcome in enumerate(record.pop("outcome_costs")):
            if isinstance(outcome, list):
                record["costs"][i] = outcome
    return ".json", json.dumps(record).encode()


def damaged_model(ending, content, rng):
    """Damage the file of a model by structure, by bytes, or not at all, but not so that it unpacks to gigabytes."""
    kept = [change for change in FORMATS[ending].changes if change is not bomb_added]
    ways = RAW if rng.random() < 0.2 else kept
    for _ in range(rng.integers(3)):
        with suppress(Exception):  # it may be too bad for a second change already
            content = ways[rng.integers(len(ways))](content, rng)
    return content

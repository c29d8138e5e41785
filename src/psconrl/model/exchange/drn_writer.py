"""Writer for Storm's explicit text format, ``.drn``, which ``drn_reader`` reads."""

from collections.abc import Iterator

import numpy as np

from psconrl.base.arrays import Floats
from psconrl.model.exchange.drn_reader import DEADLOCK, NO_LABEL
from psconrl.model.exchange.explicit_model import ExplicitModel, distinct


def write_drn(model: ExplicitModel) -> bytes:
    """Return a model as text, in the form that Storm writes."""
    return "".join(_written(model)).encode()


def _written(model: ExplicitModel) -> Iterator[str]:
    kind = "CTMC" if model.exit_rates is not None else "MDP" if (np.diff(model.first_choice) != 1).any() else "DTMC"
    names = distinct([_word(name) for name in model.rewards], "{}_{}")
    yield f"@type: {kind}\n@value_type: double\n@parameters\n\n"
    yield f"@reward_models\n{''.join(f'{name} ' for name in names)}\n"
    stuck = np.diff(model.first_choice) == 0
    yield f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices + stuck.sum()}\n@model\n"
    states = _brackets([reward.states for reward in model.rewards.values()], model.n_states)
    choices = _brackets([reward.choices for reward in model.rewards.values()], model.n_choices)
    marks = {"init": model.initial, **({DEADLOCK: stuck} if stuck.any() else {}), **model.labels}
    labels = [(_label(name), mask) for name, mask in marks.items()]
    called = model.choice_names
    of_choice = [_word(name) or NO_LABEL for name in called.names] if called is not None else []
    values = model.probabilities
    if model.exit_rates is not None:
        source = np.repeat(np.repeat(model.exit_rates, np.diff(model.first_choice)), np.diff(model.first_branch))
        values = values * source
    branches = [f"\t\t{t} : {p!r}\n" for t, p in zip(model.targets.tolist(), values.tolist(), strict=True)]
    first_choice, first_branch = model.first_choice.tolist(), model.first_branch.tolist()
    for s in range(model.n_states):
        rate = f" !{float(model.exit_rates[s])!r}" if model.exit_rates is not None else ""
        yield f"state {s}{rate}{states[s]}{''.join(f' {name}' for name, mask in labels if mask[s])}\n"
        if model.state_names is not None:
            yield f"//{model.state_names[s]}\n"
        for c in range(first_choice[s], first_choice[s + 1]):
            name = of_choice[called.of_choice[c]] if called is not None else c - first_choice[s]
            yield f"\taction {name}{choices[c]}\n"
            yield from branches[first_branch[c] : first_branch[c + 1]]


def _brackets(columns: list[Floats | None], n: int) -> list[str]:
    """Return the rewards of every state or choice, as " [1.0, 0.0]"; empty if there are no reward models."""
    if not columns:
        return [""] * n
    texts = [["0"] * n if column is None else list(map(repr, column.tolist())) for column in columns]
    return [f" [{', '.join(row)}]" for row in zip(*texts, strict=True)]


def _word(name: str) -> str:
    """Return a name without blanks, which would end it."""
    return "_".join(name.split())


def _label(name: str) -> str:
    return f'"{name}"' if len(name.split()) > 1 else name

"""Checks of the arguments of an agent's constructor, with errors that say what to write instead."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from psconrl.base.escaping import quoted
from psconrl.errors import AgentError, unknown_name
from psconrl.learning.part import Part, argument_names
from psconrl.model.cmdp import CMDP


@cache
def _signature(cls: type) -> inspect.Signature:
    constructor: Any = cls
    whole = inspect.signature(constructor.__init__)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


def check_arguments(cls: Any, given: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raise an ``AgentError`` that says what to write if the constructor cannot be called with these arguments."""
    signature = _signature(cls)
    name, parameters = cls.__name__, signature.parameters
    first = given[0] if given else options.get("n_states", options.get("model"))
    if isinstance(first, CMDP):
        sizes = "model.n_states, model.n_actions, model.thresholds, model.costs"
        trusting = f"; {name}.trusting(model) begins with what the model says" if hasattr(cls, "trusting") else ""
        raise AgentError(f"{name} is not given the model, which it has to learn; write {name}({sizes}){trusting}")
    if hasattr(first, "observation_space") and hasattr(first, "step"):
        raise AgentError(
            f"{name} is not given the environment; write {name}(task.states.size, task.actions.size, thresholds) with "
            "task = psconrl.continuing(env)"
        )
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        for option in options:
            if option not in parameters:
                raise AgentError(f"{name} has no argument {quoted(option)}{_hint(cls, option, list(parameters))}")
    try:
        signature.bind(*given, **options)
    except TypeError as error:
        required = [p.name for p in parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        raise AgentError(f"{name}: {error}; it takes {name}({', '.join(required)}, ...)") from None


def _hint(cls: Any, option: str, names: list[str]) -> str:
    """Return where an unknown option belongs: to a part, or nowhere."""
    parts: Mapping[str, Part | None] = getattr(cls, "parts", {})
    owners = [
        f"{slot}={part.__name__}({option}=...)"
        for slot in parts
        for part in Part.kinds[slot].known.values()
        if option in argument_names(part)
    ]
    if owners:
        return f", which is an option of a part; write {' or '.join(owners)}"
    kinds = [slot for slot in parts if option in Part.kinds[slot].known]
    if kinds:
        return f", which is the name of a part; write {kinds[0]}={Part.kinds[kinds[0]].known[option].__name__}(...)"
    return "; " + unknown_name("argument", option, names)

"""Reading agents saved in earlier formats.

In version 1 the parts of an agent were words. In version 2 no agent had an outlook: plans were for ever. In version 3
counts were tables of all transitions.
"""

from typing import Any

import numpy as np

SLOTS_OF_PSCONRL = {"belief", "schedule", "fallback", "ledger"}
THEORY = {"c-ucrl": "hoeffding", "ucrl-cmdp": "hoeffding", "fha": "bernstein", "span-fha": "bernstein"}


def brought_up_to_date(header: dict[str, Any], config: dict[str, Any], state: dict[str, Any]) -> None:
    """Change what a file says, in place, to what it would say in the present format."""
    if header["version"] == 1:
        header["agent"], header["recipe"] = _from_version_1(header["agent"], config, state)
    if header["version"] <= 2 and config.keys() >= SLOTS_OF_PSCONRL:  # a subclass of somebody's own has them too
        config["outlook"] = {"name": "endless"}
    if header["version"] <= 3 and config.keys() >= SLOTS_OF_PSCONRL:
        config["commitment"] = None
    if header["version"] <= 3:
        _sparse_counts(state["counts"])
        if state.get("play") is not None:
            _sparse_counts(state["play"]["record"])


def _sparse_counts(counts: dict[str, Any]) -> None:
    table = np.asarray(counts["transitions"]).ravel()
    numbers = np.flatnonzero(table)
    counts["transitions"] = {"numbers": numbers, "times": table[numbers]}


def _from_version_1(agent: Any, config: dict[str, Any], state: dict[str, Any]) -> tuple[Any, Any]:
    """Returns the class and the recipe of the agent."""
    recipe = agent
    state["thresholds"] = config["thresholds"]
    state.setdefault("explored", 0)  # not in the first files
    if agent in ("psconrl", "cmdp-psrl"):
        agent = "psconrl"
        _psconrl(recipe, config, state)
    elif agent == "lagrangian":
        config["belief"] = {"name": "dirichlet", "prior": config.pop("prior")}
        _schedule(config, state)
        state["last_policies"] = state.pop("last")
    elif agent in THEORY:
        coef, delta = config.pop("coef"), config.pop("delta")
        theory = {"name": THEORY[agent], "delta": delta}
        config["radius"] = theory if coef is None else {"name": "scaled", "coef": coef}
    if agent == "c-ucrl" and "plan_next" not in state:
        # In the first files this flag stands where the rounds of exploration belong, of which there were none.
        state["plan_next"], state["explored"] = state["explored"], 0
    state.setdefault("parts", {})
    return agent, recipe


def _psconrl(recipe: str, config: dict[str, Any], state: dict[str, Any]) -> None:
    config["belief"] = {"name": config.pop("belief", "dirichlet"), "prior": config.pop("prior")}
    _schedule(config, state)
    fallback = config.pop("if_infeasible", "unconstrained" if recipe == "cmdp-psrl" else "explore")
    action = config.pop("explore_action", "shortest")
    config["fallback"] = {"name": fallback, "action": action} if fallback == "explore" else {"name": fallback}
    share, balance = config.pop("repay", 0.0), state.pop("balance", None)
    config["ledger"] = None
    if share:
        config["ledger"] = {"name": "repay", "share": share}
        state["parts"]["ledger"] = {"balance": balance}


def _schedule(config: dict[str, Any], state: dict[str, Any]) -> None:
    config["schedule"] = {"name": config["schedule"]}
    length = state.pop("last_length")
    state["parts"] = {"schedule": {"last_length": length}} if config["schedule"]["name"] == "ouyang" else {}

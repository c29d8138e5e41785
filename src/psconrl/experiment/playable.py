"""Environments without a model, such as most of Gymnasium's: they can only be played, and their costs are learned."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from psconrl.envs.registry import open_environment
from psconrl.envs.user_environments import is_user_environment
from psconrl.model.cmdp import CMDP
from psconrl.systems.system import System


def has_known_costs(env: str, options: Mapping[str, Any], code: str) -> bool:
    """Return whether an environment has a model, whose costs an agent can be given.

    ``code``: digest of the user's code, so that changed code is asked again. An environment that cannot be built counts
    as one with a model: the checks before the first run say what is wrong with it.
    """
    return not is_user_environment(env) or _has_model(env, json.dumps(options, sort_keys=True, default=str), code)


@lru_cache(maxsize=64)
def _has_model(env: str, options: str, code: str) -> bool:
    try:
        return isinstance(open_environment(env, **json.loads(options)), CMDP | System)
    except Exception:  # of any kind, in the user's code
        return True

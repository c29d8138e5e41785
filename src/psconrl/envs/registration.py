"""The built-in environments in Gymnasium's registry: ``gymnasium.make("psconrl/Box-v0", slip=0.1)``.

``import psconrl`` registers them. Nothing is built, and no numerical library loaded, before one is made.
"""

import gymnasium

IDS = {
    "psconrl/Marsrover4x4-v0": "marsrover-4x4",
    "psconrl/Marsrover8x8-v0": "marsrover-8x8",
    "psconrl/Box-v0": "box",
    "psconrl/Counterexample-v0": "counterexample",
    "psconrl/Queue-v0": "queue",
    "psconrl/Inventory-v0": "inventory",
    "psconrl/RiverSwim-v0": "riverswim",
    "psconrl/Chain-v0": "chain",
    "psconrl/Ward-v0": "ward",
    "psconrl/Network-v0": "network",
    "psconrl/Stock-v0": "stock",
    "psconrl/Garnet-v0": "garnet",
    "psconrl/Dirichlet-v0": "dirichlet",
}


def register() -> None:
    """Tell Gymnasium of the built-in environments, once."""
    for id, name in IDS.items():
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point="psconrl.envs.gym_env:CMDPEnv", kwargs={"model": name})

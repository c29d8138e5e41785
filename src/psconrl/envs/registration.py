"""The built-in environments in Gymnasium's registry: ``gymnasium.make("psconrl/Box-v0", slip=0.1)``.

``import psconrl`` registers them as soon as Gymnasium is imported, before or after. It does not import Gymnasium
itself, since that takes longer than the rest of ``import psconrl``.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

IDS = {
    "psconrl/Marsrover4x4-v0": "marsrover-4x4",
    "psconrl/Marsrover8x8-v0": "marsrover-8x8",
    "psconrl/Box-v0": "box",
    "psconrl/Counterexample-v0": "counterexample",
    "psconrl/Queue-v0": "queue",
    "psconrl/Inventory-v0": "inventory",
    "psconrl/RiverSwim-v0": "riverswim",
    "psconrl/Chain-v0": "chain",
    "psconrl/Machine-v0": "machine",
    "psconrl/RandomWalk-v0": "random-walk",
    "psconrl/Patrol-v0": "patrol",
    "psconrl/Taxicab-v0": "taxicab",
    "psconrl/Gate-v0": "gate",
    "psconrl/Ward-v0": "ward",
    "psconrl/Network-v0": "network",
    "psconrl/Stock-v0": "stock",
    "psconrl/Garnet-v0": "garnet",
    "psconrl/Dirichlet-v0": "dirichlet",
}


def register() -> None:
    """Register the built-in environments with Gymnasium, once."""
    import gymnasium

    for id, name in IDS.items():
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point="psconrl.envs.gym_env:CMDPEnv", kwargs={"model": name})


def register_with_gymnasium() -> None:
    """Register the environments now if Gymnasium is loaded, else when it is."""
    if "gymnasium" in sys.modules:
        register()
    elif not any(isinstance(finder, _AfterGymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterGymnasium())


class _AfterGymnasium(MetaPathFinder):
    """An import hook that finds no module itself, and calls ``register`` after the import of Gymnasium."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of the other finders, extended by a step after the module is executed."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec

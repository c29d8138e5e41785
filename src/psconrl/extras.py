"""What is installed only by those who want it."""

from importlib.util import find_spec

from psconrl.errors import ConfigError


def has_matplotlib() -> bool:
    """Can pictures be drawn?"""
    return find_spec("matplotlib") is not None


def need_matplotlib(what: str) -> None:
    """An error that says how to get it, if pictures cannot be drawn."""
    if not has_matplotlib():
        raise ConfigError(f"{what} needs matplotlib: pip install 'psconrl[plots]'")


def need_stormpy(what: str) -> None:
    """An error that says how to get it, if sources of PRISM and JANI cannot be built."""
    if find_spec("stormpy") is None:
        raise ConfigError(f"{what} needs Storm: pip install 'psconrl[storm]', or export it as .umb or .drn")

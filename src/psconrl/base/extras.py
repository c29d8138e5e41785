"""Optional dependencies."""

from importlib.util import find_spec

from psconrl.errors import ConfigError


def has_matplotlib() -> bool:
    """True if matplotlib is installed, so that figures can be drawn."""
    return find_spec("matplotlib") is not None


def need_matplotlib(what: str) -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    if not has_matplotlib():
        raise ConfigError(f"{what} needs matplotlib: pip install 'psconrl[plots]'")


def need_stormpy(what: str) -> None:
    """Raise an error that says how to install Storm, which builds PRISM and JANI models, if it is missing."""
    if find_spec("stormpy") is None:
        raise ConfigError(f"{what} needs Storm: pip install 'psconrl[storm]', or export it as .umb or .drn")

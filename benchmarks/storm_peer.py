"""Storm's time for one formula, in a separate process: ``python storm_peer.py MODEL SMALL FORMULA [SETTING ...]``.

Needs stormpy and nothing else. A small model of the same kind is checked first. The settings are those of Storm's
command line, such as ``--multiobjective:precision 1e-8``; ``sound`` in their place asks for its sound methods.
Prints a line of JSON with the names that ``large.py`` uses.
"""

import json
import resource
import sys
import time
from pathlib import Path

import stormpy
import stormpy.info


def peak_gigabytes() -> float:
    """Return the peak memory of this process alone, on Linux: ``getrusage`` includes that of its parent."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith("VmHWM"))


def environment(settings: list[str]):
    """Use the settings of Storm's command line. Releases before 2.0 keep these functions elsewhere."""
    if settings == ["sound"]:
        return stormpy.environments.sound()
    if hasattr(stormpy, "set_settings"):
        stormpy.set_settings(settings)
        return stormpy.Environment()
    stormpy.developer.set_from_exploded_string(settings)
    return stormpy.developer.EnvironmentBuilder.build_environment()


def main() -> None:
    model, small, formula, *settings = sys.argv[1:]
    asked, chosen = stormpy.parse_properties(formula)[0], environment(settings)
    warm = stormpy.build_model_from_umb(small)
    stormpy.model_checking(warm, asked, only_initial_states=True, environment=chosen)
    began = time.perf_counter()
    read = stormpy.build_model_from_umb(model)
    ready = time.perf_counter()
    found = stormpy.model_checking(read, asked, only_initial_states=True, environment=chosen)
    done = time.perf_counter()
    # What cannot be met gets a truth value instead of a number.
    value = float(found.get_value(read.initial_states[0])) if hasattr(found, "get_value") else None
    version = getattr(stormpy.info, "storm_version", lambda: stormpy.__version__)()
    print(
        json.dumps(
            {
                "reading": ready - began,
                "seconds": done - ready,
                "GB": peak_gigabytes(),
                "states": read.nr_states,
                "entries": read.nr_transitions,
                "status": "",
                "gap": None,
                "value": value,
                "version": version,
            }
        )
    )


if __name__ == "__main__":
    main()

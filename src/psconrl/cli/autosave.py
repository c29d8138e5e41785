"""Periodic saving of a run of ``learn``, so that a crash loses little."""

import time
from pathlib import Path

from psconrl.simulation.model_run import Simulation
from psconrl.simulation.run import Run

AUTOSAVE_SECONDS = 10.0


class Autosave:
    """Save a run to a file, if one is given and the run can be saved, whenever the interval has passed."""

    def __init__(self, target: Path | None) -> None:
        self._target, self._saved = target, time.monotonic()

    def __call__(self, run: Run) -> None:
        """Save the run if it is time."""
        now = time.monotonic()
        if self._target is not None and isinstance(run, Simulation) and now - self._saved >= AUTOSAVE_SECONDS:
            run.save(self._target)
            self._saved = now

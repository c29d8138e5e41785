"""The watched file: a log of episodes, a results file, or a file that does not exist yet."""

import time
from pathlib import Path
from typing import Any

from psconrl.errors import ConfigError, PsconrlError
from psconrl.experiment.store import Store
from psconrl.report.monitor.log_contents import log_contents
from psconrl.report.monitor.log_file import LogFile
from psconrl.report.monitor.results_contents import results_contents, results_version

SQLITE = b"SQLite format 3\0"
REST = 4.0  # pause before the next reading, in multiples of the last reading time: the run needs the processor more


class Source:
    """The current contents of a file, as the page shows them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = LogFile(path)
        self._shown: dict[str, Any] | None = None
        self._version: object = None
        self._not_before = 0.0

    def contents(self) -> dict[str, Any]:
        """Return what to show. A missing file is waited for; a file of another kind is an error."""
        now = time.monotonic()
        if self._shown is None or now >= self._not_before:
            self._shown = {"title": "", "file": self.path.name} | self._read()
            self._not_before = time.monotonic() + REST * (time.monotonic() - now)
        return self._shown

    def report(self) -> dict[str, Any]:
        """Return the answer to the page: the contents, or the error, and the age of the file."""
        try:
            shown = self.contents()
        except PsconrlError as error:
            shown = {"title": "", "file": self.path.name, "state": "problem", "message": " ".join(str(error).split())}
        return {"age": self._age(), "contents": shown}

    def _age(self) -> float | None:
        """Return the seconds since the file was written; SQLite writes to a second file first."""
        times = []
        for path in (self.path, self.path.with_name(f"{self.path.name}-wal")):
            try:
                times.append(path.stat().st_mtime)
            except OSError:
                continue
        return max(0.0, time.time() - max(times)) if times else None

    def _read(self) -> dict[str, Any]:
        try:
            if self.path.is_dir():
                raise ConfigError(f"{self.path}: is a folder; give a log of episodes or a results file")
            with self.path.open("rb") as f:
                beginning = f.read(len(SQLITE))
            if beginning == SQLITE:
                return self._read_results()
            self._log.refresh()
            return log_contents(self._log)
        except FileNotFoundError:
            return {"state": "waiting", "message": "The file does not exist yet. It is shown as soon as it appears."}
        except OSError as error:
            if isinstance(error, PsconrlError):
                raise
            raise ConfigError(f"{self.path}: cannot be read ({error.strerror or error})") from None

    def _read_results(self) -> dict[str, Any]:
        with Store(self.path) as store:
            version = results_version(store)
            if self._shown is not None and version == self._version:
                return self._shown
            shown = results_contents(store)
            self._version = version
            return shown

"""Files of submissions: JSON, checked on reading, since it comes from others. Reading a file runs none of its code."""

import json
import sys
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.base.files import write_atomically
from psconrl.base.named_code import is_code, sources
from psconrl.errors import ConfigError, StoreError
from psconrl.experiment.checksum import changed_error
from psconrl.experiment.columns import ColumnReader
from psconrl.experiment.sent_code import MOST_BYTES
from psconrl.experiment.spec_file import shipped_spec
from psconrl.model.io import JSON_PARSED_BYTES
from psconrl.report.submission import FACTS, Runs, Submission, SubmittedRun, files_digest
from psconrl.report.submission_checksums import changed_in, with_checksums

FORMAT = "psconrl-submission"
SUBMISSION_SCHEMA = 4
LINES_DEEP = 3  # a line for every part, environment and run
RESERVED_MODULES = {"psconrl", "numpy", "scipy", "highspy", *sys.stdlib_module_names}


def files_of_agent(name: str) -> dict[str, str]:
    """Return the source of a user's agent, ``module:Class``, by path; empty for an agent of the library."""
    if not is_code(name):
        return {}
    found = sources(name)
    if not found:
        raise ConfigError(f"{name}: is installed, or has no source; a submission carries its code, as a file of yours")
    if sum(map(len, found.values())) > MOST_BYTES:
        raise ConfigError(f"{name}: its code is longer than {MOST_BYTES:,} bytes")
    try:
        return {path: content.decode() for path, content in found.items()}
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: its code is not UTF-8 text") from None


def write_submission(submission: Submission, path: Path) -> None:
    """Write a submission to a file atomically."""
    record = with_checksums({"format": FORMAT, "schema": SUBMISSION_SCHEMA, **asdict(submission)})
    text = _laid_out(record, LINES_DEEP) + "\n"
    write_atomically(path, lambda f: f.write(text.encode()), ConfigError)


def _laid_out(value: Any, depth: int) -> str:
    """Return JSON with a line for every element down to some depth, and deeper ones on the line of their parent."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_laid_out(each, depth - 1) for each in value) + "\n]"
    items = (f"{json.dumps(key)}: {_laid_out(each, depth - 1)}" for key, each in value.items())
    return "{\n" + ",\n".join(items) + "\n}"


def read_submission(path: Path) -> Submission:
    """Read a submission; a file that is not one, or was changed since it was written, raises a one-line error."""
    if not path.is_file():
        raise StoreError(f"{path}: no such file")
    need(JSON_PARSED_BYTES * path.stat().st_size, f"{path}: its text", StoreError)
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise StoreError(f"{path}: is not JSON") from None
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise StoreError(f"{path}: is not a submission, as `psconrl board submit` writes it")
    if record.get("schema") != SUBMISSION_SCHEMA:
        raise StoreError(
            f"{path}: has schema {quoted(record.get('schema'))}, and this psconrl reads {SUBMISSION_SCHEMA}; make it "
            "again with `psconrl board submit`"
        )
    found = _Reader(path).submission(record)
    try:
        changed = changed_in(record)
    except RecursionError:
        raise StoreError(f"{path}: its options are nested too deeply") from None
    if changed:
        raise changed_error(path, changed, "Make it again with `psconrl board submit`, ask its author")
    return found


class _Reader:
    """Checks the parts of a submission; errors name the file and the part."""

    def __init__(self, path: Path) -> None:
        self._columns = ColumnReader(path, "Make it again with `psconrl board submit`")

    def submission(self, record: dict[str, Any]) -> Submission:
        columns = self._columns
        environments = {name: self._facts(name, facts) for name, facts in self._table(record, "environments").items()}
        files = self._texts(record, "files")
        name = columns.text(record.get("name"), "name")
        self._check_files(name, files)
        protocol = self._table(record, "protocol")
        if not isinstance(protocol.get("quick"), bool):
            columns.wrong("quick of protocol", "true or false")
        found = Submission(
            name=name,
            title=columns.text(record.get("title"), "title"),
            setting=columns.text(record.get("setting"), "setting"),
            options=self._table(record, "options"),
            files=files,
            code=columns.text(record.get("code"), "code"),
            tuning=None if record.get("tuning") is None else self._tuning(self._table(record, "tuning")),
            protocol={
                "digest": columns.text(protocol.get("digest"), "digest of protocol"),
                "seed": columns.whole(protocol.get("seed"), "seed of protocol"),
                "quick": protocol["quick"],
            },
            versions=self._texts(record, "versions"),
            platform=self._texts(record, "platform"),
            environments=environments,
            left_out=self._texts(record, "left_out"),
            runs=self._runs(record, "runs", environments),
            reference=self._runs(record, "reference", environments),
        )
        if found.code != files_digest(files):
            columns.wrong("code", "the digest of files")
        self._check_complete(found)
        return found

    def _table(self, record: dict[str, Any], key: str) -> dict[str, Any]:
        value = record.get(key)
        return value if isinstance(value, dict) else self._columns.wrong(key, "a JSON object")

    def _texts(self, record: dict[str, Any], key: str) -> dict[str, str]:
        return {name: self._columns.text(value, f"{key}: {name}") for name, value in self._table(record, key).items()}

    def _check_files(self, name: str, files: dict[str, str]) -> None:
        """Refuse a name that would import other code than that of the files, and files outside their folder."""
        if not files and name not in shipped_spec("leaderboard").agents:
            self._columns.wrong("name", "an agent of the leaderboard, or one with its code in files")
        for path in files:
            parts = PurePosixPath(path).parts
            plain = all(part.removesuffix(".py").isidentifier() for part in parts)
            if not path.endswith(".py") or not plain or parts[0].removesuffix(".py") in RESERVED_MODULES:
                self._columns.wrong(f"the path {quoted(path)} of a file", "that of a module, relative to its folder")
        module = name.partition(":")[0].replace(".", "/")
        if files and (not is_code(name) or not {f"{module}.py", f"{module}/__init__.py"} & set(files)):
            self._columns.wrong("name", "module:Class, with the module among files")

    def _facts(self, name: str, facts: Any) -> dict[str, Any]:
        if not isinstance(facts, dict):
            self._columns.wrong(f"environment {quoted(name)}", "a JSON object")
        names = self._columns.texts(facts.get("cost_names"), f"cost_names of {quoted(name)}")
        lengths = {"thresholds": len(names) - 1, "optimum": len(names), "prices": len(names) - 1}
        assert {"cost_names", "range_prices", *lengths} == set(FACTS)
        numbers = {
            key: self._columns.numbers(facts.get(key), f"{key} of {quoted(name)}", length)
            for key, length in lengths.items()
        }
        least = self._columns.prices(facts.get("range_prices"), f"range_prices of {quoted(name)}", len(names) - 1)
        return {"cost_names": names, **numbers, "range_prices": least}

    def _tuning(self, tuning: dict[str, Any]) -> dict[str, Any]:
        values = self._columns.numbers(tuning.get("values"), "values of tuning")
        return {
            "option": self._columns.text(tuning.get("option"), "option of tuning"),
            "values": values,
            "losses": self._columns.numbers(tuning.get("losses"), "losses of tuning", len(values)),
            "chosen": self._columns.number(tuning.get("chosen"), "chosen of tuning"),
        }

    def _runs(self, record: dict[str, Any], key: str, environments: dict[str, dict[str, Any]]) -> Runs:
        found: Runs = {}
        for name, runs in self._table(record, key).items():
            if name not in environments or not isinstance(runs, list) or not runs:
                self._columns.wrong(f"{key} of {quoted(name)}", "a list of runs in one of environments")
            n_costs = len(environments[name]["cost_names"])
            found[name] = [self._run(run, f"{key} of {quoted(name)}", n_costs) for run in runs]
            if len({str(run.rounds) for run in found[name]}) > 1:
                self._columns.wrong(f"{key} of {quoted(name)}", "runs with the same rounds")
        return found

    def _run(self, run: Any, where: str, n_costs: int) -> SubmittedRun:
        columns = self._columns
        if not isinstance(run, dict):
            columns.wrong(where, "a list of JSON objects")
        rounds, totals = run.get("rounds"), run.get("totals")
        if not isinstance(rounds, list) or len(rounds) != 2 or not isinstance(totals, list) or len(totals) != 2:
            columns.wrong(f"rounds and totals in {where}", "those at T/16 and T")
        first, last = (columns.whole(x, f"rounds in {where}") for x in rounds)
        if not 1 <= first <= last:
            columns.wrong(f"rounds in {where}", "those at T/16 and T")
        strong = run.get("strong")
        return SubmittedRun(
            replicate=columns.whole(run.get("replicate"), f"replicate in {where}"),
            rounds=[first, last],
            totals=[columns.numbers(row, f"totals in {where}", n_costs) for row in totals],
            largest_excess=columns.numbers(run.get("largest_excess"), f"largest_excess in {where}", n_costs - 1),
            strong=None if strong is None else columns.numbers(strong, f"strong in {where}", n_costs),
            seconds=columns.number(run.get("seconds"), f"seconds in {where}"),
            digest=columns.text(run.get("digest"), f"digest in {where}"),
        )

    def _check_complete(self, found: Submission) -> None:
        """Check that no run is missing: an agent has the runs of the reference, or none if it refuses to play."""
        if not found.runs:
            self._columns.wrong("runs", "there")
        for name in found.environments:
            reference = [run.replicate for run in found.reference.get(name, [])]
            own = [run.replicate for run in found.runs.get(name, [])]
            if not reference or sorted(reference) != list(range(len(reference))):
                self._columns.wrong(f"reference of {quoted(name)}", "runs from 0 on")
            if own and sorted(own) != sorted(reference):
                self._columns.wrong(f"runs of {quoted(name)}", "as many as those of the reference")

"""What a results file holds to make its runs again: spec, code of the user, versions and processors.

A sweep notes the text of its spec and the sources of the user's agents, environments and metrics, and every run the
processor and the libraries that it had. A file is only read here: nothing that it holds is run.
"""

import json
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from psconrl.base.escaping import quoted
from psconrl.base.files import write_atomically
from psconrl.base.named_code import digest, source_files
from psconrl.errors import ConfigError
from psconrl.experiment.job import Job, Result, code_names
from psconrl.experiment.spec import Jobs
from psconrl.experiment.store import Store
from psconrl.kernels import INSTRUCTIONS

# What a run records, besides its times.
PROVENANCE = (
    "psconrl", "commit", "code", "python", "numpy", "scipy", "highspy", "gymnasium", "blas", "kernels", "cpu", "system",
    "host",
)  # fmt: skip
PINNED = ("psconrl", "numpy", "scipy", "highspy", "gymnasium")  # packages in constraints.txt
MOST_SOURCE = 1_000_000  # bytes of code, or of a file, that are kept; larger code belongs in a package
TEXTS = (".toml", ".json")  # of systems and models that are text
SPEC, SPEC_OF, CODE, FILE = "spec ", "spec of ", "code ", "file "  # start of keys in meta


class KeptFile(NamedTuple):
    """A text in a results file."""

    path: str
    text: str
    kind: str  # "spec", "code" of the user, or "file" of a model or system


@cache
def this_machine() -> dict[str, str]:
    """Return the processor, the system and the libraries that a run's hash does not cover.

    ``kernels`` is the instruction set of the kernels.
    """
    blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    return {
        "gymnasium": version("gymnasium"),
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "kernels": INSTRUCTIONS,
        "cpu": processor(),
        "system": platform.platform(),
    }


def processor() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), "") or platform.processor() or platform.machine()


def on_this_machine(job: Job, run: Callable[[Job], Result]) -> Result:
    """Run a job, and record the machine in its provenance."""
    result = run(job)
    return replace(result, provenance=result.provenance | this_machine())


def notes_of(jobs: Sequence[Job]) -> dict[str, str]:
    """Return what a sweep notes of its spec and its code: rows of the table meta."""
    origin = jobs.origin if isinstance(jobs, Jobs) else None
    folder = None if origin is None else origin.folder
    folder = (Path() if folder is None else folder).resolve()
    named = {job.code: [name for name, _ in code_names(job)] for job in jobs if job.code}
    metrics = {digest(metric.code): metric.code for metric in jobs.metrics} if isinstance(jobs, Jobs) else {}
    for code, name in metrics.items():
        named.setdefault(code, []).append(name)
    notes = {f"{CODE}{code}": json.dumps(_sources(names, folder)) for code, names in named.items()}
    if origin is not None and origin.text:
        key = sha256(origin.text.encode("utf-8", "replace")).hexdigest()[:16]
        notes[f"{SPEC}{key}"] = json.dumps({"name": origin.name, "text": origin.text})
        of_experiment = json.dumps({"spec": key, "quick": origin.quick, "metrics": list(metrics)})
        notes |= {f"{SPEC_OF}{job.experiment}": of_experiment for job in jobs}
    for file, job in {job.file: job for job in jobs if Path(job.env).suffix in TEXTS}.items():
        path = Path(job.env).resolve()
        if path.is_file() and path.stat().st_size <= MOST_SOURCE:
            notes[f"{FILE}{file}"] = json.dumps(_texts({path: path.parent}, folder))
    return notes


def _sources(names: Iterable[str], folder: Path) -> dict[str, str]:
    """Return the sources of named code; none if they are too long."""
    files = {path: top for name in names for path, top in source_files(name)}
    return _texts(files, folder) if sum(path.stat().st_size for path in files) <= MOST_SOURCE else {}


def _texts(files: Mapping[Path, Path], folder: Path) -> dict[str, str]:
    """Return the texts of files by their paths, relative to the folder of the spec or else to a folder of their own."""
    found = {}
    for path, top in files.items():
        name = path.relative_to(folder if path.is_relative_to(folder) else top).as_posix()
        found[name] = path.read_bytes().decode("utf-8", "surrogateescape")
    return found


def provenance_rows(store: Store) -> list[list[str]]:
    """Return what the current runs record, one row for each quantity: all values that it has."""
    found = store.query("SELECT DISTINCT provenance FROM runs WHERE current")
    records = [store.columns.table(row[0], "provenance of a run") for row in found]
    seen = {key: sorted({str(record[key]) for record in records if record.get(key)}) for key in PROVENANCE}
    return [[key, ", ".join(values)] for key, values in seen.items() if values]


def kept_files(store: Store) -> list[KeptFile]:
    """Return the specs of the current runs, the sources of the user's code, and the files of models that are text.

    Of several versions of a file, the second one is in the folder ``version-2``, and so on.
    """
    meta = {store.columns.text(key, "a key"): value for key, value in store.query("SELECT key, value FROM meta")}
    files: dict[str, KeptFile] = {}
    for each in [*_specs(store, meta), *_sources_kept(store, meta)]:
        path, number = each.path, 1
        while path in files and files[path].text != each.text:
            number += 1
            path = f"version-{number}/{each.path}"
        files[path] = each._replace(path=path)
    return list(files.values())


def _specs(store: Store, meta: Mapping[str, Any]) -> Iterator[KeptFile]:
    for name in _current_experiments(store):
        if f"{SPEC_OF}{name}" in meta:
            found = _table(store, meta, f"{SPEC_OF}{name}").get("spec")
            key = store.columns.text(found, f"the spec of {quoted(name)}")
            spec = _table(store, meta, f"{SPEC}{key}")
            file, text = (store.columns.text(spec.get(part), f"the {part} of a spec") for part in ("name", "text"))
            plain = re.sub(r"[^\w -]", "_", file)
            yield KeptFile(f"{plain or 'spec'}.toml", text, "spec")


def _sources_kept(store: Store, meta: Mapping[str, Any]) -> Iterator[KeptFile]:
    for start, field in ((CODE, "code"), (FILE, "file")):
        found = store.query(f"SELECT DISTINCT json_extract(job, '$.{field}') FROM runs WHERE current ORDER BY id")
        of_metrics = _codes_of_metrics(store, meta) if start == CODE else []
        for key in dict.fromkeys(f"{start}{name}" for name in [*(row[0] for row in found), *of_metrics] if name):
            for path, text in _table(store, meta, key).items() if key in meta else ():
                _need_within(store, path)
                yield KeptFile(path, store.columns.text(text, f"the text of {quoted(path)}"), field)


def _codes_of_metrics(store: Store, meta: Mapping[str, Any]) -> list[str]:
    """Return the digests of the metrics in the specs of the current runs."""
    codes: list[str] = []
    for name in _current_experiments(store):
        if f"{SPEC_OF}{name}" in meta:
            found = _table(store, meta, f"{SPEC_OF}{name}").get("metrics", [])
            codes += store.columns.texts(found, f"the metrics of {quoted(name)}")
    return codes


def _current_experiments(store: Store) -> list[Any]:
    return [name for (name,) in store.query("SELECT DISTINCT experiment FROM runs WHERE current ORDER BY id")]


def restore(store: Store, folder: Path) -> list[Path]:
    """Write the specs, the sources and a file of versions to a folder, and return the files.

    A file that is there with other contents is an error.
    """
    contents = {each.path: each.text for each in kept_files(store)}
    contents["constraints.txt"] = _constraints({row[0]: row[1] for row in provenance_rows(store)})
    encoded = {folder / name: text.encode("utf-8", "surrogateescape") for name, text in contents.items()}
    for path, content in encoded.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise ConfigError(f"{path}: is there with other contents; choose another folder")
    for path, content in encoded.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{path.parent}: cannot be made ({error.strerror or error})") from None
        write_atomically(path, partial(_write, content), ConfigError)
    return list(encoded)


def _write(content: bytes, f: IO[bytes]) -> None:
    f.write(content)


def _constraints(found: Mapping[str, str]) -> str:
    """Return the versions of the packages for ``pip install --constraint``, with the commit of psconrl as a comment.

    >>> print(_constraints({"python": "3.12.1", "psconrl": "0.1.0", "commit": "0a8a27a07f3e+", "code": "5be1"}), end="")
    # Python 3.12.1
    psconrl==0.1.0
    # psconrl: commit 0a8a27a07f3e with changes; hash of its code 5be1
    >>> _constraints({})
    '# Python unknown\\n'
    """
    lines = [f"# Python {found.get('python', 'unknown')}"]
    for name in PINNED:
        if name in found:
            lines.append(f"{name}=={found[name]}" if ", " not in found[name] else f"# {name}: {found[name]}")
        if name == "psconrl":  # many commits have the same version
            commits = ", ".join(each.replace("+", " with changes") for each in found.get("commit", "").split(", "))
            known = [f"commit {commits}"] if commits else []
            known += [f"hash of its code {found['code']}"] if "code" in found else []
            lines += [f"# psconrl: {'; '.join(known)}"] * bool(known)
    return "\n".join(lines) + "\n"


def _table(store: Store, meta: Mapping[str, Any], key: str) -> dict[str, Any]:
    return store.columns.table(meta.get(key), f"{quoted(key)} in the table meta")


def _need_within(store: Store, path: str) -> None:
    """Raise an error unless a path stays within a folder, on every system, and names no hidden file."""
    parts = path.split("/")
    if not path.isprintable() or any(not part or part.startswith(".") or set(part) & set("\\:") for part in parts):
        store.columns.wrong(f"the name of a file, {quoted(path)},", "a path within a folder")

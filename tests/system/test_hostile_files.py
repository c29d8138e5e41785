"""Hostile files: a clean error, quickly, in a process that may take 200 MB more than it has after its imports."""

import gzip
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

import numpy as np
import pytest

import psconrl
from test_limits import HEADER, SMALL, claiming, npz

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")

SPARE_MB, SECONDS = 200, 20  # of processor time, on a slow machine; before the checks it took 95 s and 6.9 GB
ONE = {"transition": np.ones((1, 1))}
PLAN = np.array(json.dumps({"format": "psconrl-plan", "version": 1, "cost_names": ["a"]}))
STATE = {"all": {"@array": "big"}}
AGENT = np.array(
    json.dumps(
        {"format": "psconrl-agent", "version": 1, "agent": "psconrl", "recipe": "psconrl", "config": {}, "state": STATE}
        | {"extra": {}}
    )
)
CHILD = """
import os, resource, sys, time
import psconrl
from psconrl.experiment.spec_file import read_spec
from psconrl.model.exchange import drn_reader, umb
from psconrl.systems import System
psconrl.load, psconrl.Plan, psconrl.load_agent, psconrl.Simulation, psconrl.plan(psconrl.load("box"))
has = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (has + {spare} * 2**20,) * 2)
readers = {{
    "model": psconrl.load,
    "plan": psconrl.Plan.load,
    "agent": psconrl.load_agent,
    "run": lambda path: psconrl.Simulation.resume(path, psconrl.load("box")),
    "exchange": lambda path: psconrl.load(path, minimise="x"),
    "system": lambda path: System.load(path).model(),
    "spec": lambda path: read_spec(path).jobs(),
}}
for argument in sys.argv[1:]:
    reader, _, path = argument.partition("=")
    begun = time.process_time()
    try:
        readers[reader](path)
        print("read", path)
    except psconrl.PsconrlError as error:
        assert len(str(error)) <= 2000 and str(error).isprintable() and "MemoryError" not in str(error), str(error)
        print(time.process_time() - begun, str(error))
"""


def renamed_size(path, name, file_size=None, compress_size=None, method=None):
    """Change what the directory and the local header of a zip file say about a member."""
    content = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x01\x02", 46), (b"PK\x03\x04", 30)):
        k = content.find(mark)
        while content[k + at : k + at + len(name)] != name.encode():
            k = content.find(mark, k + 1)
        sizes = k + (20 if at == 46 else 18)
        if method is not None:
            struct.pack_into("<H", content, sizes - 10, method)
        if compress_size is not None:
            struct.pack_into("<I", content, sizes, compress_size)
        if file_size is not None:
            struct.pack_into("<I", content, sizes + 4, file_size)
    path.write_bytes(content)
    return path


def zip_files(folder, full):
    """Yield hostile files with the words of the expected error; those that take seconds to make only if ``full``."""

    def model(label, **members):
        return npz(folder / f"{label}.npz", **({"header": HEADER} | SMALL | ONE | members))

    yield model("rows without entries", costs=claiming((10**8, 0, 0))), "'costs' claims to have shape"
    many = npz(folder / "many.npz", header=HEADER, **SMALL | {"costs": claiming((10**6, 0, 0))}, big=bytes(2 * 10**6))
    yield many, "costs must have shape"
    for label, shape in {
        "huge": (10**12,), "square": (10**9, 10**9), "overflow": (2**62, 4), "negative": (-1, 1),
        "two negative": (-1, -2), "digits": (10**300, 10**300),
    }.items():  # fmt: skip
        yield model(label, transition=claiming(shape, content=bytes(16))), "'transition' claims to have shape"
    yield model("objects", transition=claiming((2,), "|O", bytes(16))), "never read"
    yield model("void", transition=claiming((), "|V16", bytes(16))), "must hold numbers"
    yield model("wide text", header=claiming((), "<U100000000", b"")), "'header' claims to have shape"
    yield (
        model("long header", transition=b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31) + b" " * 100),
        "truncated, or not",
    )
    yield renamed_size(model("directory"), "transition.npy", file_size=2**31), "cannot unpack"
    stored = zipfile.ZipFile(folder / "stored.npz", "w")
    with stored:
        stored.writestr("header.npy", b"x")
    yield renamed_size(folder / "stored.npz", "header.npy", file_size=2**31), "cannot unpack"
    yield renamed_size(model("method"), "transition.npy", method=12), "compressed in a way that is not read"
    long = model("long stream", junk=np.random.default_rng(0).bytes(2 * 10**6))
    yield renamed_size(long, "junk.npy", file_size=1_900_000_000), "what it unpacks to takes 1.9 GB, more than 1 GB"
    cut = model("cut")
    cut.write_bytes(cut.read_bytes()[:-30])
    yield cut, "truncated, or not"
    lost = model("lost", junk=bytes(10))
    content = lost.read_bytes()
    begin = content.find(b"transition.npy") + 40
    lost.write_bytes(content[:begin] + bytes(20) + content[begin + 20 :])
    yield lost, "truncated, or not"
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(model("twice"), "a") as archive:
        archive.writestr("transition.npy", b"other")
    yield folder / "twice.npz", "two of its arrays have the same name"
    if not full:
        return
    # These unpack to what they claim, zeros or spaces, and are refused before that.
    yield model("zeros", transition=claiming((1, 30_000_000), content=bytes(240_000_000))), "must have shape"
    spaces = b" \0\0\0" * 60_000_000
    yield model("spaces", header=claiming((), "<U60000000", spaces)), "its text takes 1.68 GB, more than 1 GB"


def run(files, memory_gb="1"):
    """Read files, pairs of a reader and a path, in one process with little memory, and return a line for each."""
    code = CHILD.format(spare=SPARE_MB)
    arguments = [f"{reader}={path}" for reader, path in files]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=600,
        env=os.environ | {"PSCONRL_MEMORY_GB": memory_gb},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == len(files), done.stdout
    return lines


def test_a_hostile_model_file(tmp_path, full):
    files = list(zip_files(tmp_path, full))
    for (path, words), line in zip(files, run([("model", path) for path, _ in files]), strict=True):
        seconds, _, message = line.partition(" ")
        assert words in message, (path.name, line)
        assert float(seconds) < SECONDS
        assert path.stat().st_size < 3_000_000


def test_hostile_plans_agents_and_runs(tmp_path):
    """The same archives, with a header and an array that their reader takes."""
    arrays = {"policy": np.ones((1, 1)), "costs": np.ones(1)}
    hostile = {
        "shape": {"big": claiming((10**12,), content=bytes(8)), "policy": claiming((10**12, 1), content=bytes(8))},
        "rows": {"big": claiming((10**8, 0)), "policy": claiming((0, 10**8)), "columns": claiming((10**8, 0))},
        "objects": {"big": claiming((1,), "|O", bytes(8)), "policy": claiming((1, 1), "|O", bytes(8))},
    }
    files = []
    for kind, header, readers in (("plan", PLAN, ["plan"]), ("agent", AGENT, ["agent", "run"])):
        paths = [npz(tmp_path / f"{kind}-{k}.npz", header=header, **arrays | hostile[k]) for k in hostile]
        bomb = npz(tmp_path / f"{kind}-bomb.npz", header=header, big=bytes(10**6), policy=bytes(10**6))
        paths.append(renamed_size(bomb, "big.npy", file_size=2**31))
        files += [(reader, path) for reader in readers for path in paths]
    for (reader, path), line in zip(files, run(files), strict=True):
        assert not line.startswith("read"), (reader, path.name)
        assert float(line.split()[0]) < SECONDS


def umb(index, **files):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in {"index.json": json.dumps(index).encode(), **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return plain.getvalue()


@pytest.mark.full
def test_hostile_files_of_other_programs(tmp_path):
    """Hundreds of megabytes of zeros in a file of 300 kB, and lists that are left out but claimed to be long."""
    system = {"time": "discrete", "#players": 0, "#initial-states": 0, "#choice-actions": 0, "#observations": 0}
    system |= {"#states": 10**6, "#choices": 10**6, "#branches": 10**6, "#branch-actions": 0}
    index = {"format-version": 1, "format-revision": 0, "transition-system": system, "annotations": {}}
    zeros = gzip.compress(bytes(10**7), mtime=0) * 31  # members that are unpacked one after the other
    files = {
        "zeros.umb": (zeros, "what it unpacks to, at least, takes 301 MB, more than 300 MB"),
        "zeros.drn": (zeros, "what it unpacks to, at least, takes 301 MB, more than 300 MB"),
        "zeros.drn.xz": (lzma.compress(bytes(310 * 10**6), preset=0), "what it unpacks to, at least, takes 301 MB"),
        "absent.umb": (umb(index), "#states is 1,000,000, for which the archive is too short"),
        "absent.umb.gz": (gzip.compress(umb(index)), "#states is 1,000,000, for which the archive is too short"),
        "cut.drn.gz": (gzip.compress(bytes(10**5))[:-40], "truncated or damaged"),
    }
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    lines = run([("exchange", tmp_path / name) for name in files], memory_gb="0.3")
    for (name, (_, words)), line in zip(files.items(), lines, strict=True):
        assert words in line, (name, line)
        assert float(line.split()[0]) < 2 * SECONDS


def test_the_ratio_of_deflate_is_known():
    """A megabyte of zeros: just below the ratio that no stream exceeds."""
    packed = zlib.compress(bytes(10**7), 9)
    assert 900 < 10**7 / len(packed) < 1032


def test_an_honest_model_of_zeros_is_still_read(tmp_path):
    """Rows of one entry each pack well, but not beyond the ratio."""
    S = 1500
    model = psconrl.CMDP(np.eye(S), np.zeros((1, S, 1)))
    psconrl.save(model, tmp_path / "eye.npz")
    assert (tmp_path / "eye.npz").stat().st_size < S * S * 8 / 200
    assert psconrl.load(tmp_path / "eye.npz").n_states == S

"""Damage of ``.npz`` and ``.umb`` files: valid archives, whose checksums are right, with wrong members."""

import gzip
import io
import json
import struct
import tarfile
import warnings
import zipfile
import zlib
from functools import cache

import numpy as np

from damage.raw import CHANGES as RAW
from damage.trees import json_text, tree_changed, without_parts
from psconrl.model.exchange.packed import write_tar

SPECIAL = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 1e300, 5e-324, 1e9, 0.5, -1e-9, 2.0**63)
WHOLE = (0, 1, -1, 7, 10**8, 10**9, 2**62, -(2**63))
KINDS = ("<f4", "<c16", "|b1", "<i1", "<u8", ">f8", "<f2", "<i4", "<U5", "|S3", "<M8[s]", "<f8", "<i8")
SHAPES = ((10**12,), (2**62, 4), (-1, 1), (10**8, 0), (0, 10**8), (), (1,) * 33, (10**300,), (2**31, 2**33), (3, 5, 7))
DESCRIPTIONS = ("|O", "|V16", "<U100000000", "<f8", "<f16", ">i8", [("a", "<f8")], "x", "<M8[as]", "<f8,<f8")
BOMB = 3 * 10**8  # bytes that a few hundred thousand unpack to


def members_of(content):
    """Return names and contents of the members of a zip file, unless it holds a bomb."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if max(member.file_size for member in archive.infolist()) >= BOMB:
            raise ValueError
        return [(member.filename, archive.read(member)) for member in archive.infolist()]


def zipped(members, stored=None) -> bytes:
    """Return a zip file, in which a name may occur twice; ``stored``: one more member, which is not compressed."""
    written = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
        if stored is not None:
            archive.writestr(zipfile.ZipInfo(stored[0]), stored[1], zipfile.ZIP_STORED)
    return written.getvalue()


def npy(array, **claims) -> bytes:
    """Return an array as a member; ``claims``: what its header says instead of the truth."""
    written = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array) | claims
    np.lib.format.write_array_header_2_0(written, header)
    return written.getvalue() + array.tobytes("F" if header["fortran_order"] is True else "C")


def array_of(content):
    """Return the array of a member."""
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _of_one_member(change):
    """Turn a change of an array into one of a file."""

    def changed(content, rng):
        members = members_of(content)
        k = int(rng.integers(len(members)))
        name, member = members[k]
        members[k] = name, change(array_of(member), rng)
        return zipped(members)

    changed.__name__ = change.__name__
    return changed


def members_dropped_or_renamed(content, rng):
    """Drop, rename, duplicate or exchange members."""
    members = members_of(content)
    k, j = (int(x) for x in rng.integers(len(members), size=2))
    (name, member), (other, theirs) = members[k], members[j]
    kind = int(rng.integers(5))
    if kind == 0:
        del members[k]
    elif kind == 1:
        members[k] = [other, "x.npy", "../x.npy", name.removesuffix(".npy"), ""][rng.integers(5)], member
    elif kind == 2:
        members.append((name, theirs))
    else:
        members[k], members[j] = (name, theirs), (other, member)
    return zipped(members)


def header_changed(content, rng):
    """Change something in the JSON of the header."""
    members = members_of(content)
    for k, (name, member) in enumerate(members):
        if name == "header.npy":
            tree = tree_changed(json.loads(str(array_of(member))), rng)
            members[k] = name, npy(np.array(json.dumps(tree)))
    return zipped(members)


@_of_one_member
def entries_changed(array, rng):
    """Change one number, a few or all, of which some are not possible at all."""
    if not array.size or array.dtype.kind not in "fiub":
        return npy(array)
    if rng.random() < 0.3:
        array = array.astype(np.float64)
    kind = rng.random()
    chosen = slice(None) if kind < 0.1 else rng.integers(array.size, size=1 if kind < 0.6 else 5)
    values = SPECIAL if array.dtype.kind == "f" else WHOLE
    new = values[rng.integers(len(values))]
    flat = array.ravel()
    with np.errstate(all="ignore"):
        flat[chosen] = flat[chosen] * 10 + 1 if rng.random() < 0.2 else np.array(new).astype(array.dtype)
    return npy(flat.reshape(array.shape))


@_of_one_member
def form_changed(array, rng):
    """Give an array another type, shape or order."""
    kind = int(rng.integers(9))
    if kind == 0:
        return npy(array.ravel()[: int(rng.integers(array.size + 1))])
    if kind == 1:
        return npy(array[..., None])
    if kind == 2:
        return npy(np.asfortranarray(array))
    if kind == 3:
        return npy(array.T)
    if kind == 4:
        return npy(np.concatenate([array.ravel()] * int(rng.choice([2, 3, 100]))))
    if kind == 5:
        return npy(np.array("x" if rng.random() < 0.5 else json.dumps({"a": 1})))
    if kind == 6 and array.ndim:
        return npy(np.repeat(array, 2, axis=int(rng.integers(array.ndim))))
    if kind == 7:
        return npy(np.zeros((0, *array.shape[1:])))
    with np.errstate(all="ignore"):
        return npy(array.astype(KINDS[rng.integers(len(KINDS))]))


@_of_one_member
def claim_changed(array, rng):
    """Let the header of an array say what is not so."""
    kind = int(rng.integers(5))
    if kind == 0:
        return npy(array, shape=SHAPES[rng.integers(len(SHAPES))])
    if kind == 1:
        return npy(array, descr=DESCRIPTIONS[rng.integers(len(DESCRIPTIONS))])
    if kind == 2:
        return npy(array, fortran_order=not array.flags.f_contiguous)
    if kind == 3:
        return b"\x93NUMPY" + bytes([int(rng.integers(4)), int(rng.integers(2))]) + npy(array)[8:]
    return RAW[rng.integers(3)](npy(array), rng)


@cache
def _bomb(descr):
    """Return a huge array of zeros or spaces as a member: its deflated bytes, checksum and length."""
    full = npy(np.zeros(1), shape=(BOMB // 8,) if descr == "<f8" else (), descr=descr)[:-8]
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed, checksum, piece = stream.compress(full), zlib.crc32(full), bytes(BOMB // 100)
    for _ in range(100):
        packed, checksum = packed + stream.compress(piece), zlib.crc32(piece, checksum)
    return packed + stream.flush(), checksum, len(full) + BOMB


def bomb_added(content, rng):
    """Let a member unpack to more than a small machine has memory for."""
    members = members_of(content)
    k = int(rng.integers(len(members)))
    name, is_header = members[k][0], members[k][0] == "header.npy"
    packed, checksum, length = _bomb(f"<U{BOMB // 4}" if is_header else "<f8")
    damaged = bytearray(zipped(members[:k] + members[k + 1 :], stored=(name, packed)))
    for mark, at, text in ((b"PK\x01\x02", 10, 46), (b"PK\x03\x04", 8, 30)):
        start = damaged.find(mark)
        while damaged[start + text : start + text + len(name)] != name.encode():
            start = damaged.find(mark, start + 1)
        struct.pack_into("<H", damaged, start + at, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", damaged, start + at + 6, checksum)
        struct.pack_into("<I", damaged, start + at + 14, length)
    return bytes(damaged)


def umb_changed(content, rng):
    """Change the index of a ``.umb`` archive, or one of its files."""
    files = umb_files(content)
    names = list(files)
    name = names[rng.integers(len(names))]
    if rng.random() < 0.5:
        files["index.json"] = json_text(tree_changed(json.loads(files["index.json"]), rng))
    elif rng.random() < 0.2:
        del files[name]
    else:
        files[name] = RAW[rng.integers(len(RAW))](files[name], rng)
    return write_tar(files)


def umb_files(content):
    """Return the files of a ``.umb`` archive."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


NPZ = (
    *(members_dropped_or_renamed, claim_changed) * 6,
    *(form_changed, header_changed, entries_changed) * 16,
    bomb_added,  # which takes a second to unpack
)
UMB = (umb_changed,)


def simpler_npz(content):
    """Yield simpler archives: without a member, with a simpler header, with fewer entries."""
    members = members_of(content)
    for k, (name, member) in enumerate(members):
        yield zipped(members[:k] + members[k + 1 :])
        if name == "header.npy":
            for tree in without_parts(json.loads(str(array_of(member)))):
                yield zipped([*members[:k], (name, npy(np.array(json.dumps(tree)))), *members[k + 1 :]])


def simpler_umb(content):
    """Yield simpler archives: without a file, or with a simpler index."""
    files = umb_files(content)
    for name in files:
        yield write_tar({other: files[other] for other in files if other != name})
    for tree in without_parts(json.loads(files["index.json"])):
        yield write_tar(files | {"index.json": json_text(tree)})

"""Damage of bytes, whatever they mean: what a disk, a network or an attacker does to a file."""

import struct

SMALL, LARGE = 4096, 200_000  # bytes that a change inserts
LENGTHS = (0, 1, 2, 100, 2**15, 2**16 - 1, 2**31, 2**32 - 2, 2**32 - 1)
# Offsets of the numbers of two and four bytes in the parts of a zip file, by the mark that each part begins with.
ZIP_FIELDS = {
    b"PK\x01\x02": ((6, 8, 10, 28, 30, 32), (16, 20, 24, 42)),
    b"PK\x03\x04": ((4, 6, 8, 26, 28), (14, 18, 22)),
    b"PK\x05\x06": ((4, 6, 8, 10, 20), (12, 16)),
}


def bytes_flipped(content, rng):
    """Flip one bit in each of a few bytes."""
    damaged = bytearray(content)
    for _ in range(_few(rng) if content else 0):
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def bytes_replaced(content, rng):
    """Replace a few bytes by others."""
    damaged = bytearray(content)
    for _ in range(_few(rng) if content else 0):
        damaged[rng.integers(len(damaged))] = int(rng.integers(256))
    return bytes(damaged)


def cut_short(content, rng):
    """Truncate the file."""
    return content[: int(rng.integers(len(content) + 1))]


def block_removed(content, rng):
    """Remove a block."""
    start, stop = _block(content, rng)
    return content[:start] + content[stop:]


def block_zeroed(content, rng):
    """Zero a block."""
    start, stop = _block(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


def block_moved(content, rng):
    """Overwrite a block with another."""
    start, stop = _block(content, rng)
    there = int(rng.integers(len(content) + 1))
    return content[:there] + content[start:stop] + content[there + stop - start :]


def block_repeated(content, rng):
    """Insert a block many times in its place."""
    start, stop = _block(content, rng)
    times = min(int(rng.choice([1, 10, 1000])), LARGE // max(stop - start, 1))
    return content[:stop] + content[start:stop] * times + content[stop:]


def inserted(content, rng):
    """Insert noise, or many times the same few characters, of which a parser may keep account."""
    place = int(rng.integers(len(content) + 1))
    pieces = [rng.bytes(int(rng.integers(1, SMALL))), bytes(SMALL), b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\x1b[2J"]
    pieces += [mark * LARGE for mark in (b"[", b'{"":', b"9", b" ", b"\n", b",", b"(", b"-", b"a.")]
    return content[:place] + pieces[rng.integers(len(pieces))] + content[place:]


def replaced_by_noise(content, rng):
    """Replace the whole content, or all but its beginning, by noise."""
    return content[: int(rng.choice([0, 0, 4, 16, 100]))] + rng.bytes(int(rng.integers(0, SMALL)))


def zip_field_changed(content, rng):
    """Change a length, a checksum or another number in the directory or the headers of a zip file."""
    marks = [(k, mark) for mark in ZIP_FIELDS for k in _places(content, mark)]
    if not marks:
        return bytes_flipped(content, rng)
    k, mark = marks[rng.integers(len(marks))]
    short, long = ZIP_FIELDS[mark]
    form, offset = [("<H", x) for x in short] + [("<I", x) for x in long], 0
    form, offset = form[rng.integers(len(form))]
    damaged = bytearray(content)
    if k + offset + struct.calcsize(form) > len(damaged):
        return content
    old = struct.unpack_from(form, damaged, k + offset)[0]
    new = (old + int(rng.choice([-1, 1]))) if rng.random() < 0.3 else LENGTHS[rng.integers(len(LENGTHS))]
    struct.pack_into(form, damaged, k + offset, new % 256 ** struct.calcsize(form))
    return bytes(damaged)


def spliced(content, other, rng):
    """Return the beginning of one file followed by the end of another of the same kind."""
    return content[: int(rng.integers(len(content) + 1))] + other[int(rng.integers(len(other) + 1)) :]


CHANGES = (
    bytes_flipped, bytes_replaced, cut_short, block_removed, block_zeroed, block_moved, block_repeated, inserted,
    replaced_by_noise, zip_field_changed,
)  # fmt: skip


def _few(rng):
    return 1 if rng.random() < 0.5 else int(rng.integers(2, 30))


def _block(content, rng):
    start = int(rng.integers(len(content) + 1))
    length = int(rng.integers(1, 17)) if rng.random() < 0.5 else int(rng.integers(1, SMALL))
    return start, min(start + length, len(content))


def _places(content, mark):
    k = content.find(mark)
    while k >= 0:
        yield k
        k = content.find(mark, k + 1)

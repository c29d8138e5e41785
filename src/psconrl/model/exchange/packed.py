"""Plain, gzip, xz and tar files, with size checks before anything is unpacked."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator

from psconrl.base.caps import memory_gb, need
from psconrl.base.escaping import quoted
from psconrl.errors import ModelError

GZIP, XZ, TAR = b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"ustar"
TAR_MARK = 257  # offset of the tar magic
TAR_BLOCK = 512
PIECE = 2**20  # bytes that are decompressed at once
XZ_WORKS_IN = 2**27  # bytes; its strongest setting takes 65 MB


def unpacked(data: bytes) -> bytes:
    """Return the contents of a file, decompressed if needed.

    They are decompressed twice: first piece by piece to find their length, which only then is allocated.
    """
    if not data.startswith((GZIP, XZ)):
        return data
    allowed = int(1e9 * memory_gb())
    try:
        length = 0
        for piece in _pieces(data):
            length += len(piece)
            if length > allowed:
                need(length, "what it unpacks to, at least,", ModelError)
        return b"".join(_pieces(data))
    except (EOFError, OSError, zlib.error):
        raise ModelError("truncated or damaged: it cannot be decompressed") from None


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yield the contents of a compressed file."""
    if data.startswith(GZIP):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as f:
            yield from iter(lambda: f.read(PIECE), b"")
        return
    import lzma  # some Python builds lack it

    try:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_WORKS_IN)
        rest = data
        while not stream.eof:
            piece = stream.decompress(rest, max_length=PIECE)
            if not piece and stream.needs_input:
                raise EOFError
            yield piece
            rest = b""
    except lzma.LZMAError:
        raise EOFError from None


def is_tar(data: bytes) -> bool:
    """True if the data starts like a tar archive."""
    return data[TAR_MARK : TAR_MARK + len(TAR)] == TAR


def read_tar(data: bytes) -> dict[str, memoryview]:
    """Return the files of a tar archive by path. An archive without an end was truncated."""
    files: dict[str, memoryview] = {}
    end = 0
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            if member.sparse is not None:
                raise ModelError(f"{quoted(member.name)} is stored with holes, which is not supported")
            start, stop = member.offset_data, member.offset_data + member.size
            end = stop + -stop % TAR_BLOCK
            if stop > len(data):
                break
            if member.isreg():
                files[member.name.removeprefix("./").removeprefix("/")] = memoryview(data)[start:stop]
    if bytes(data[end : end + TAR_BLOCK]) != bytes(TAR_BLOCK):
        raise ModelError("truncated: the archive has no end")
    return files


def write_tar(files: dict[str, bytes]) -> bytes:
    """Return a compressed archive; the same files give the same bytes."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=1, mtime=0)

"""Plain, gzip, xz and tar files, with size checks before anything is unpacked."""

import gzip
import io
import tarfile
import zlib

from psconrl.caps import memory_gb, need
from psconrl.errors import ModelError

GZIP, XZ, TAR = b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"ustar"
TAR_MARK = 257  # offset of the tar magic
TAR_BLOCK = 512
XZ_WORKS_IN = 2**27  # bytes; its strongest setting takes 65 MB


def unpacked(data: bytes) -> bytes:
    """Return the contents of a file, decompressed if needed."""
    allowed = int(1e9 * memory_gb())
    try:
        if data.startswith(GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as f:
                data = f.read(allowed + 1)
        elif data.startswith(XZ):
            data = _from_xz(data, allowed)
    except (EOFError, OSError, zlib.error):
        raise ModelError("truncated or damaged: it cannot be decompressed") from None
    if len(data) > allowed:
        need(len(data), "what it unpacks to, at least,", ModelError)
    return data


def _from_xz(data: bytes, allowed: int) -> bytes:
    import lzma  # some Python builds lack it

    try:
        stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=max(allowed, XZ_WORKS_IN))
        result = stream.decompress(data, max_length=allowed + 1)
    except lzma.LZMAError:
        raise EOFError from None
    if not stream.eof and len(result) <= allowed:
        raise EOFError
    return result


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
                raise ModelError(f"{member.name!r} is stored with holes, which is not supported")
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

"""A table in a CSV file, read block by block.

The separator is a comma, a semicolon or a tab, whichever the header has most of. The encoding is UTF-8. A file
that ends in ``.gz`` is unpacked while it is read.
"""

import gzip
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.data.tables.columns import CellBlock, Reader
from psconrl.data.tables.growing import GrowingArray
from psconrl.data.tables.rows import TableRows, need_columns
from psconrl.errors import LogError
from psconrl.kernels.tables import cells

BLOCK_BYTES = 1 << 23
ROWS_IN_BLOCK = 1 << 16
LONGEST_ROW = 1 << 24  # bytes; a million cells of a number each
SEPARATORS = b",;\t"
FIRST_LINE = 2  # of the rows, after the header
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"PK\x03\x04": "a spreadsheet or another archive"}


class CSVTable:
    """A CSV file: its columns, and its rows, block by block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as file:
            start = self._take(file, LONGEST_ROW)
        self._check_text(start)
        self._begin = 3 if start.startswith(b"\xef\xbb\xbf") else 0
        header = self._header(start)
        self.columns, self.separator, self._rest = header
        need_columns(self.columns)

    def _opened(self) -> IO[bytes]:
        return gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")  # type: ignore[return-value]

    def _check_text(self, start: bytes) -> None:
        if not start.strip():
            raise LogError("the file is empty")
        found = next((what for mark, what in MARKS.items() if start.startswith(mark)), None)
        at = start.find(b"\0")
        if found is not None or at >= 0:
            what = f"it seems to be {found}" if found else f"byte {at:,} is zero"
            raise LogError(f"not text in UTF-8, but {what}; save the table as CSV with the encoding UTF-8")

    def _header(self, start: bytes) -> tuple[list[str], int, int]:
        """Return the names of the columns, the separator, and where the rows begin."""
        buffer = np.frombuffer(start, dtype=np.uint8)
        n_lines = min(start.count(b"\n") + 1, 2)
        first = start[self._begin :].split(b"\n", 1)[0]
        end = self._begin + len(first)
        while first.count(b'"') % 2 and (end := start.find(b"\n", end + 1)) >= 0:  # a line end within quotes
            first = start[self._begin : end]
        bare = re.sub(rb'"[^"]*"', b"", first)
        separator = max(SEPARATORS, key=lambda mark: bare.count(bytes([mark])))
        most = first.count(bytes([separator])) + 1
        place = np.arange(most, dtype=np.int32)
        starts, lengths = np.empty((most, 1), dtype=np.int64), np.empty((most, 1), dtype=np.int32)
        lines, widths = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int32)
        rows, rest, line = cells.split(
            buffer, self._begin, buffer.size, separator, place, starts, lengths, lines, widths, 1, n_lines == 1
        )
        if rows != 1 or widths[0] > most:
            raise LogError(f"the header, which begins with {quoted(first[:40])}, does not end within 16 MB")
        self._line = line
        cut = [start[b : b + n] for b, n in zip(starts[:, 0].tolist(), lengths[:, 0].tolist(), strict=True) if n >= 0]
        try:
            return [name.decode("utf-8").replace('""', '"') for name in cut], separator, rest
        except UnicodeDecodeError:
            raise LogError(
                f"the header, which begins with {quoted(first[:40])}, is not text in UTF-8; save the table as CSV with "
                "the encoding UTF-8"
            ) from None

    def read(self, readers: Mapping[str, Reader]) -> TableRows:
        """Hand all rows to the readers of columns, by name."""
        names = list(readers)
        place = np.full(len(self.columns), -1, dtype=np.int32)
        for k, name in enumerate(names):
            place[self.columns.index(name)] = k
        header = [name.encode() for name in names]
        rows, ragged, repeated = GrowingArray(np.int32), GrowingArray(np.bool_), []
        starts = np.empty((len(names), ROWS_IN_BLOCK), dtype=np.int64)
        lengths = np.empty((len(names), ROWS_IN_BLOCK), dtype=np.int32)
        lines, widths = np.empty(ROWS_IN_BLOCK, dtype=np.int64), np.empty(ROWS_IN_BLOCK, dtype=np.int32)
        line, total = self._line, 0
        with self._opened() as file:
            self._take(file, self._rest)
            rest = b""
            is_last = False
            while not is_last:
                new = self._take(file, BLOCK_BYTES)
                is_last = len(new) < BLOCK_BYTES
                raw = rest + new
                buffer, begin = np.frombuffer(raw, dtype=np.uint8), 0
                while True:
                    n, begin, line = cells.split(
                        buffer, begin, buffer.size, self.separator, place, starts, lengths, lines, widths, line, is_last
                    )
                    if n < 0:
                        raise LogError(f"line {line:,}: a quote is opened, and not closed before the file ends")
                    if n == 0:
                        break
                    kept = self._other_than_header(raw, header, starts[:, :n], lengths[:, :n])
                    repeated.extend(lines[:n][~kept].tolist())
                    own = kept.nonzero()[0] if not kept.all() else slice(n)
                    total += int(kept.sum())
                    need(total * (8.0 * len(names) + 40.0), f"a log of {total:,} rows and more", LogError)
                    other = widths[own] != len(self.columns)
                    rows.add(lines[own])
                    ragged.add(other)
                    if other.any():  # a cell may stand in another column than its own
                        lengths[:, :n][:, np.flatnonzero(kept)[other]] = -1
                    for k, reader in enumerate(readers.values()):
                        reader.add_cells(CellBlock(buffer, starts[k][own], lengths[k][own]))
                rest = raw[begin:]
                if len(rest) > LONGEST_ROW:
                    raise LogError(f"line {line:,} does not end within 16 MB; it is no row, or a quote is open")
        return TableRows(rows.whole(), ragged.whole(), np.array(repeated, dtype=np.int64))

    def _take(self, file: IO[bytes], size: int) -> bytes:
        try:
            return file.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise LogError("the archive is damaged") from None

    def _other_than_header(self, raw: bytes, header: list[bytes], starts: Any, lengths: Any) -> Any:
        """Return which rows are not the header once more, as where several files were put one after the other."""
        kept = np.ones(starts.shape[1], dtype=bool)
        if not header:
            return kept
        same = np.logical_and.reduce([lengths[k] == len(name) for k, name in enumerate(header)])
        for row in np.flatnonzero(same).tolist():
            kept[row] = any(raw[starts[k, row] : starts[k, row] + len(name)] != name for k, name in enumerate(header))
        return kept

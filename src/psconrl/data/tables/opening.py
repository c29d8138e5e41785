"""Tables of every kind: CSV and Parquet files, data frames, Arrow tables, DuckDB relations, and arrays by name.

All go through ``narwhals``, but for CSV files and arrays. The first row has line 2, after the header, in every table.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import narwhals
import numpy as np
from numpy.typing import NDArray

from psconrl.base.arrays import Bools
from psconrl.base.caps import need
from psconrl.base.escaping import quoted
from psconrl.data.tables.columns import AnyReader, Reader, TimeReader
from psconrl.data.tables.csv_table import FIRST_LINE, CSVTable
from psconrl.data.tables.rows import TableRows, need_columns
from psconrl.data.tables.timestamps import AWARE, NAIVE, Timestamps
from psconrl.errors import ConfigError, LogError, PsconrlError

ROWS_IN_BATCH = 1 << 18
CSV, PARQUET, ARROW = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


class TableSource(Protocol):
    """A table: the names of its columns, and a way to read some of them."""

    columns: list[str]

    def read(self, readers: Mapping[str, Reader]) -> TableRows:
        """Hand all rows to the readers of columns, by name."""


def open_table(given: Any) -> TableSource:
    """Return a table of any kind.

    >>> open_table({"state": [0, 1], "action": ["go", "stay"]}).columns
    ['state', 'action']
    """
    if isinstance(given, str | Path):
        return _open_file(Path(given))
    if isinstance(given, Mapping):
        return ArrayTable(given)
    try:
        frame = narwhals.from_native(given)
    except TypeError:
        raise LogError(
            "a table must be a path, a data frame, an Arrow table, a DuckDB relation or a table of arrays by name; got "
            f"{quoted(given)}"
        ) from None
    except narwhals.exceptions.NarwhalsError as error:
        raise LogError(f"the data frame cannot be read ({one_line(error)})") from None
    return FrameTable(frame)


def _open_file(path: Path) -> TableSource:
    if not path.is_file():
        raise LogError(f"{path}: no such file")
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    try:
        if kind.lower() in PARQUET or kind.lower() in ARROW:
            return BatchTable(path, kind.lower() in PARQUET)
        if kind.lower() in CSV:
            return CSVTable(path)
    except PsconrlError as error:
        raise type(error)(f"{path}: {error}") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read ({error.strerror or error})") from None
    raise LogError(f"{path}: a table must be a file in .csv, .csv.gz, .tsv, .parquet or .arrow")


class _Whole:
    """A table without lines of its own."""

    columns: list[str]

    def _rows(self, n: int) -> TableRows:
        lines = np.arange(FIRST_LINE, n + FIRST_LINE, dtype=np.int32)
        return TableRows(lines, np.zeros(n, dtype=bool), lines[:0])


class ArrayTable(_Whole):
    """Arrays, or lists, by name."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.columns = [str(name) for name in arrays]
        need_columns(self.columns)
        self._arrays = {str(name): _as_column(name, values) for name, values in arrays.items()}
        sizes = {name: values.size for name, values in self._arrays.items()}
        if len(set(sizes.values())) > 1:
            (one, n), (other, m) = min(sizes.items(), key=lambda x: x[1]), max(sizes.items(), key=lambda x: x[1])
            raise LogError(f"columns must have the same length; {quoted(one)} has {n:,} rows, {quoted(other)} {m:,}")

    def read(self, readers: Mapping[str, Reader]) -> TableRows:
        """Hand all rows to the readers of columns, by name."""
        for name, reader in readers.items():
            _add_array(reader, self._arrays[name])
        return self._rows(next((values.size for values in self._arrays.values()), 0))


def _as_column(name: Any, values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        plain = values.data.astype(object)
        plain[np.ma.getmaskarray(values)] = None
        values = plain
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        array = np.empty((0, 0))
    if array.dtype.kind in "SU" and isinstance(values, list | tuple) and not all(isinstance(v, str) for v in values):
        array = np.array(values, dtype=object)  # numbers among texts, and missing values
    if array.dtype.kind == "m":
        array = np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "s"))
    if array.ndim != 1 or array.dtype.kind not in "biufOUM":
        raise LogError(f"the column {quoted(name)} must be a list of numbers, texts or times; got {quoted(values)}")
    return array


def _missing(values: NDArray[Any]) -> Bools:
    """Return which values are missing: None, nan, and no time."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "M":
        return np.asarray(np.isnat(values))
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.zeros(values.size, dtype=bool)


def _add_array(reader: Reader, values: NDArray[Any]) -> None:
    for k in range(0, max(values.size, 1), ROWS_IN_BATCH):
        some = values[k : k + ROWS_IN_BATCH]
        reader.add_values(some, _missing(some))


class FrameTable(_Whole):
    """A data frame, an Arrow table, or a relation."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        with _reading(Exception):  # a query is run, which may fail in any way
            names = frame.collect_schema().names()
        self.columns = [str(name) for name in names]
        need_columns(self.columns)
        if not all(isinstance(name, str) for name in names):
            raise LogError(
                f"the names of columns must be texts; got {quoted([*names][:5])}. With pandas: "
                "frame.columns = frame.columns.astype(str)"
            )

    def read(self, readers: Mapping[str, Reader]) -> TableRows:
        """Hand all rows to the readers of columns, by name."""
        with _reading(Exception):
            frame = self._collected(readers)
        for name, reader in readers.items():
            series = frame[name]
            for k in range(0, max(len(series), 1), ROWS_IN_BATCH):
                _add_series(reader, series[k : k + ROWS_IN_BATCH])
        return self._rows(len(frame))

    def _collected(self, readers: Mapping[str, Reader]) -> Any:
        frame = self._frame.select(list(readers))
        if isinstance(frame, narwhals.LazyFrame):
            number = int(frame.select(narwhals.len()).collect()["len"][0]) if readers else 0
            need(number * 8.0 * max(len(readers), 1), f"a table of {number:,} rows", LogError)
            frame = frame.collect()
        return frame


def _add_series(reader: Reader, series: Any) -> None:
    """Hand a part of a column to its reader."""
    kind = series.dtype
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    if isinstance(kind, narwhals.Datetime | narwhals.Date):
        zone = getattr(kind, "time_zone", None)
        moment = series.cast(narwhals.Datetime("us")) if isinstance(kind, narwhals.Date) else series
        utc = _seconds(moment, missing)
        local = utc if zone is None else _seconds(moment.dt.replace_time_zone(None), missing)
        if isinstance(reader, TimeReader):
            wrong = np.zeros(utc.size, dtype=bool)
            reader.add_known(Timestamps(utc, local, wrong, frozenset([NAIVE if zone is None else AWARE])))
        else:
            reader.add_values(np.where(missing, 0.0, local).astype("datetime64[s]").astype(str), missing)
        return
    if isinstance(kind, narwhals.Duration):
        micros = np.asarray(series.dt.total_microseconds().fill_null(0).to_numpy())
        reader.add_values(micros / 1e6, missing)
        return
    if kind.is_numeric() or kind == narwhals.Boolean:
        filled = series.fill_null(False if kind == narwhals.Boolean else 0) if missing.any() else series
        values = np.asarray(filled.to_numpy())
        values = values.astype(np.float64) if values.dtype.kind == "O" else values  # decimals
        missing = missing | _missing(values)
    elif kind in (narwhals.String, narwhals.Categorical) or isinstance(kind, narwhals.Enum) or kind == narwhals.Object:
        values = np.array(series.to_list(), dtype=object)
        missing = missing | _missing(values)
    elif isinstance(reader, AnyReader):
        reader.reject()
        return
    else:
        raise LogError(f"the column {quoted(series.name)} must be numbers, texts or times; it is {quoted(str(kind))}")
    reader.add_values(values, missing)


def _seconds(moment: Any, missing: Bools) -> NDArray[np.float64]:
    whole = np.asarray(moment.dt.timestamp("us").fill_null(0).to_numpy())
    return np.where(missing, np.nan, whole.astype(np.float64) / 1e6)


class BatchTable(_Whole):
    """A Parquet or Arrow file, read batch by batch."""

    def __init__(self, path: Path, is_parquet: bool) -> None:
        try:
            import pyarrow
        except ImportError:
            raise ConfigError("such files need the extra: pip install 'psconrl[tables]', or use CSV") from None
        self._path, self._is_parquet, self._arrow = path, is_parquet, pyarrow
        with self._reading():
            schema = self._open().schema_arrow if is_parquet else self._open().schema
        self.columns = [str(name) for name in schema.names]
        need_columns(self.columns)

    def _reading(self) -> Any:
        return _reading(self._arrow.ArrowException, OSError, ValueError, KeyError, MemoryError)

    def _open(self) -> Any:
        if self._is_parquet:
            import pyarrow.parquet

            return pyarrow.parquet.ParquetFile(self._path)
        import pyarrow.ipc

        return pyarrow.ipc.open_file(self._arrow.memory_map(str(self._path)))

    def _batches(self, names: list[str]) -> Iterator[Any]:
        file = self._open()
        if self._is_parquet:
            rows = file.metadata.num_rows
            need(rows * 8.0 * max(len(names), 1), f"a table of {rows:,} rows", LogError)
            yield from file.iter_batches(ROWS_IN_BATCH, columns=names)
            return
        for k in range(file.num_record_batches):
            yield file.get_batch(k).select(names)

    def read(self, readers: Mapping[str, Reader]) -> TableRows:
        """Hand all rows to the readers of columns, by name."""
        n = 0
        with self._reading():
            for batch in self._batches(list(readers)):
                n += batch.num_rows
                need(n * 8.0 * max(len(readers), 1), f"a table of {n:,} rows and more", LogError)
                frame = narwhals.from_native(self._arrow.Table.from_batches([batch]), eager_only=True)
                for name, reader in readers.items():
                    _add_series(reader, frame[name])
        return self._rows(n)


@contextmanager
def _reading(*kinds: type[BaseException]) -> Iterator[None]:
    """Turn errors of other libraries into those of one line."""
    try:
        yield
    except PsconrlError:
        raise
    except kinds as error:
        raise LogError(f"cannot be read ({one_line(error)})") from None


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split())[:200]

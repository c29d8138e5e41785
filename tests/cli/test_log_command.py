"""The command ``log check``."""

import json

import numpy as np
import pytest

from log_samples import shop, shop_rows
from psconrl.cli import main


def run(capsys, *args):
    with pytest.raises(SystemExit) as leaving:
        main(["log", "check", *map(str, args)])
    out = capsys.readouterr()
    return leaving.value.code or 0, out.out, out.err


@pytest.fixture
def table(tmp_path):
    rows = shop_rows(2_000)
    path = tmp_path / "shop.csv"
    np.savetxt(path, np.column_stack(list(rows.values())), "%d", ",", header=",".join(rows), comments="")
    return path


def test_a_log_of_a_system(capsys, table, tmp_path):
    shop().save(tmp_path / "shop.toml")
    code, out, _ = run(capsys, table, "--system", tmp_path / "shop.toml")
    assert code == 0
    assert "Log(1,999 rounds, 6 states, 4 actions)" in out


def test_a_log_without_a_system_as_json(capsys, table):
    code, out, _ = run(
        capsys,
        table,
        "--state",
        "shelf",
        "--action",
        "order",
        "--costs",
        "order,lost",
        "--threshold",
        "lost=.5",
        "--json",
    )
    record = json.loads(out)
    assert code == 0
    assert (record["findings"][-1]["check"], record["findings"][-1]["subject"]) == ("outcome", "demand")
    assert record["is_good"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--action", "order"], "--state: name its columns"),
        (["--state", "shelf", "--action", "odrer"], "unknown column 'odrer'; did you mean 'order'?"),
        (["--state", "shelf,", "--action", "order"], "--state: must be names separated by commas"),
        (["--state", "shelf", "--action", "order", "--threshold", "lost=1"], "unknown limit 'lost'"),
    ],
)
def test_bad_input_is_one_line(capsys, table, args, message):
    code, out, err = run(capsys, table, *args)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1

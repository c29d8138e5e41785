"""Tables that a page keeps between two comments, ``<!-- table: NAME -->`` and ``<!-- end of table -->``."""

import re
from collections.abc import Mapping
from pathlib import Path

MARKED = re.compile(r"<!-- table: (.+?) -->\n(.*?)<!-- end of table -->", re.DOTALL)


def tables_of(text: str) -> dict[str, str]:
    """Return the tables of a page, by name."""
    return {name: table.strip() for name, table in MARKED.findall(text)}


def fill_tables(page: Path, tables: Mapping[str, str]) -> None:
    """Replace the tables of a page by those of the same names; a page with another table, or none, is an error."""
    text = page.read_text("utf-8")
    wanted = set(tables_of(text))
    if not wanted or wanted - set(tables):
        raise SystemExit(f"{page} has the tables {sorted(wanted)}, and there are {sorted(tables)}")

    def filled(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n\n{tables[match[1]]}\n\n<!-- end of table -->"

    page.write_text(MARKED.sub(filled, text), encoding="utf-8")

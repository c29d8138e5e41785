"""The command ``provenance``."""

from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from psconrl.cli.render import console
from psconrl.experiment.provenance import kept_files, provenance_rows, restore
from psconrl.experiment.store import Store


@click.command("provenance")
@click.argument("results")
@click.option("-o", "--out", metavar="FOLDER", help="Write the spec, the code and constraints.txt to a folder.")
def provenance_command(results: str, out: str | None) -> None:
    """Show what made RESULTS: versions, processor, spec and code; --out writes what is needed to make it again.

    This runs none of the code in the file.
    """
    with Store(results) as store, store.snapshot():
        if out is not None:
            for path in restore(store, Path(out)):
                console().print(Text(f"File: {path}"))
            return
        rows, files = provenance_rows(store), kept_files(store)
    table = Table("what", "value")
    for name, values in rows:
        table.add_row(name, Text(values))
    for kind, title in (("spec", "spec"), ("code", "your own code"), ("file", "model files")):
        names = ", ".join(file.path for file in files if file.kind == kind)
        table.add_row(title, Text(names or "none kept"))
    console().print(table)

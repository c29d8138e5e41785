"""The command ``cite``."""

import click

from psconrl.base.escaping import printable
from psconrl.experiment.citations import agents_cited, citations


@click.command("cite")
@click.argument("names", nargs=-1, metavar="[AGENT|RESULTS]...")
def cite_command(names: tuple[str, ...]) -> None:
    """Print BibTeX of the library, and of the algorithms that are named or that a results file has runs of.

    psconrl cite c-ucrl fha; psconrl cite results.db; without a name, the library and its paper.
    """
    click.echo(printable(citations(agents_cited(names))))

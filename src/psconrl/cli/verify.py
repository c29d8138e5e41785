"""The command ``verify``."""

import sys
from pathlib import Path

import click

from psconrl import check_proof
from psconrl.base.escaping import printable
from psconrl.cli.exit_codes import REFUSED
from psconrl.cli.options import GivenModel, model_and_threshold_options
from psconrl.errors import ModelError
from psconrl.planning.proof.proof_files import plain_model


@click.command("verify")
@model_and_threshold_options
@click.argument("proof", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def verify_command(model: GivenModel, proof: Path) -> None:
    """Check the file PROOF, which ``solve --proof`` wrote, against MODEL in exact arithmetic.

    Exit code 0 if proven, 1 if refused. The folder check_proof of this package does the same without the package.
    """
    cmdp = model.read()
    try:
        lines = check_proof.check(plain_model(cmdp), check_proof.read_proof(proof))
    except check_proof.RefusedError as refused:
        click.echo(printable(f"REFUSED: {refused}"))
        sys.exit(REFUSED)
    except (check_proof.BadInputError, OSError) as error:
        raise ModelError(f"{proof}: {error}") from None
    click.echo("\n  ".join(map(printable, lines)))

"""The command ``monitor``."""

import os
import sys
import webbrowser
from pathlib import Path

import click

from psconrl.base.escaping import printable, quoted
from psconrl.cli.signals import end_politely
from psconrl.errors import ConfigError
from psconrl.report.monitor.page import write_monitor
from psconrl.report.monitor.server import Server
from psconrl.report.monitor.source import Source


@click.command("monitor")
@click.argument("file")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page. [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--once", "snapshot", metavar="PAGE", help="Write the present contents to an .html file, and exit.")
def monitor_command(file: str, port: int, no_browser: bool, snapshot: str | None) -> None:
    """Watch FILE, the log of a run or the results of a sweep, on a page that refreshes by itself.

    The log is written by `psconrl learn --log FILE` or psconrl.CSVLog, the results by `psconrl sweep --out FILE`.
    Monitoring works while they are written and afterwards. A file that does not exist yet is waited for. The page is
    served to this machine only. Ctrl-C ends it.
    """
    source = Source(Path(file))
    source.contents()  # raises an error if it is another kind of file
    if snapshot is not None:
        if Path(snapshot).suffix.lower() not in (".html", ".htm"):
            raise ConfigError(f"--once: {quoted(snapshot)} must end in .html")
        if not Path(file).exists():
            raise ConfigError(f"{file}: no such file")
        write_monitor(source.report(), Path(snapshot))
        click.echo(printable(f"Page: {snapshot}"))
        return
    with Server(source, port) as server:
        waits = ", which does not exist yet" if not Path(file).exists() else ""
        click.echo(printable(f"Watching {file}{waits}: {server.url} (Ctrl-C ends)"))
        sys.stdout.flush()
        if not no_browser and _has_screen():
            webbrowser.open(server.url)
        end_politely()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("Ended.")


def _has_screen() -> bool:
    """Return True if there is a display; without one, Python would open a browser inside the terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

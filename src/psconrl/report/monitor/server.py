"""Local web server of the monitor: two addresses, read-only, on the loopback interface only.

Pages of other origins cannot read it: no header allows them to, and a request with a foreign Host, as in DNS rebinding,
is refused.
"""

import socketserver
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from psconrl.errors import ConfigError
from psconrl.report.monitor.page import render_monitor
from psconrl.report.monitor.source import Source
from psconrl.report.page import as_json

LOOPBACK = "127.0.0.1"
SECONDS = 10.0  # timeout of a request
PAGE, DATA = "/", "/data.json"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """Serves the contents of a source; ``serve_forever`` runs until ``shutdown`` or Ctrl-C. Port 0: any free port."""

    daemon_threads = True

    def __init__(self, source: Source, port: int = 0) -> None:
        self.source = source
        self.reading = threading.Lock()
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            why = error.strerror or error
            raise ConfigError(f"--port: {port} cannot be used ({why}); choose another, or leave it out") from None

    def server_bind(self) -> None:
        """Bind without looking up the name of this machine, for which the parent class would ask a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = LOOPBACK, self.server_address[1]

    @property
    def hosts(self) -> set[str]:
        """Values of the Host header that are accepted."""
        return {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{LOOPBACK}:{self.server_port}{PAGE}"

    def answer(self, path: str) -> tuple[str, str] | None:
        """Return the type and the text of what is at a path; None if there is nothing."""
        if path not in (PAGE, DATA):
            return None
        with self.reading:
            report = self.source.report()
        return (
            ("text/html", render_monitor(report, live=True)) if path == PAGE else ("application/json", as_json(report))
        )


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = SECONDS
    server_version, sys_version = "psconrl", ""

    def do_GET(self) -> None:
        """Answer a request."""
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", f"This server answers at {self.server.url} only.\n")
            return
        found = self.server.answer(self.path)
        if found is None:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "There is nothing here.\n")
        else:
            self._send(HTTPStatus.OK, *found)

    do_HEAD = do_GET  # noqa: N815

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (
            HEADERS | {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
        ).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the terminal belongs to the user."""

"""A server in the place of Google's APIs that is out of order in one way."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PAGE: Final = "<!DOCTYPE html><html><head><title>Hotel Wi-Fi</title></head>Please log in</html>"


@dataclass(frozen=True)
class Outage:
    """What is answered to every request."""

    status: int
    body: str = _PAGE  # the body; a page of HTML unless it is JSON
    location: str = ""  # where a redirect leads to; "" for none


def saying(status: int, message: str) -> Outage:
    """An answer in the form of Google's APIs."""
    return Outage(status, json.dumps({"error": {"code": status, "message": message}}))


OUTAGES: Final = {
    "429": saying(429, "Rate Limit Exceeded"),
    "500": saying(500, "Internal error encountered."),
    "502 page": Outage(502),
    "503": saying(503, "The service is currently unavailable."),
    "504": saying(504, "Deadline expired before operation could complete."),
    "captive portal": Outage(200),
    "portal that redirects": Outage(302, location="/login"),
    "portal that redirects for ever": Outage(302, location="/"),
    "403 of a proxy": Outage(403),
    "404 of a proxy": Outage(404),
    "511": Outage(511),
}


@contextlib.contextmanager
def served(outage: Outage) -> Iterator[str]:
    """Serve it; yields the URL, with a slash at its end."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            login = self.path == "/login"
            body = outage.body.encode()
            self.send_response(200 if login else outage.status)
            if outage.location and not login:
                self.send_header("Location", outage.location)
            kind = "text/html" if body.startswith(b"<") else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815 - http.server looks for these names

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

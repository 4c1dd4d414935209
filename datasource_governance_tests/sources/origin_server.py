"""A local HTTP server that answers as a test lets it, with versions as real ones have them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class OriginServer:
    """Serves `content` at every path but those in `moved`, which lead elsewhere.

    With an `etag` or `last_modified` it answers 304 where a request names either. `asked` has the
    headers of every request.
    """

    content: bytes = b"a\n1\n2\n"
    etag: str | None = None
    last_modified: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    promised_bytes: int | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    address: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(dict(handler.headers.items()))
        if handler.path in self.moved:
            self._head(handler, 302, {"Location": self.moved[handler.path], "Content-Length": "0"})
        elif self._is_known(handler):
            self._head(handler, 304, {})
        else:
            named = {"ETag": self.etag, "Last-Modified": self.last_modified}
            size = len(self.content) if self.promised_bytes is None else self.promised_bytes
            versions = {name: value for name, value in named.items() if value is not None}
            self._head(
                handler,
                self.status,
                {"Content-Length": str(size), **versions, **self.headers},
            )
            handler.wfile.write(self.content)

    def _is_known(self, handler: BaseHTTPRequestHandler) -> bool:
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return any(value and handler.headers[name] == value for name, value in named.items())

    def _head(self, handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str]) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()


@contextmanager
def origin_server() -> Iterator[OriginServer]:
    """Serve in a thread of this process."""
    origin = OriginServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            origin.answer(self)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        origin.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield origin
        server.shutdown()
        thread.join()

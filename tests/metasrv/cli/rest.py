"""A REST service in a thread that answers what it was told, and remembers what it was asked."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import orjson

from metasrv_base.errors import MetaError, NotFound
from metasrv_base.wire.problem.problems import problem_of

LEARN = "/v1/cluster"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any
    bearer: str | None = None
    """The Authorization header."""
    key: str | None = None
    """The Idempotency-Key header."""
    if_match: str | None = None
    """The If-Match header."""
    prefer: str | None = None
    """The Prefer header."""


@dataclass
class Rest:
    url: str = ""
    answers: dict[tuple[str, str], tuple[int, Any] | MetaError] = field(default_factory=dict)
    """By method and path without its query. Bytes are sent as they are, everything else as JSON."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with each answer."""
    asked: list[Asked] = field(default_factory=list)
    """But for what every client asks first: which servers there are."""
    on_request: Callable[[str, str], None] = lambda method, path: None
    """Called with method and path before the answer is sent."""

    def answer(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """*headers*: names in small letters."""
        self.on_request(method, path)
        if path != LEARN:
            document = orjson.loads(body) if body else None
            bearer, key = headers.get("authorization"), headers.get("idempotency-key")
            if_match, prefer = headers.get("if-match"), headers.get("prefer")
            self.asked.append(Asked(method, path, document, bearer, key, if_match, prefer))
        said = self.answers.get((method, path.partition("?")[0]), NotFound(what="route", name=path))
        if isinstance(said, MetaError):
            status, _, problem = problem_of(said, path, "test")
            return status, orjson.dumps(problem)
        status, content = said
        return status, content if isinstance(content, bytes) else orjson.dumps(content)


@contextmanager
def serving() -> Iterator[Rest]:
    rest = Rest()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer leaves as one packet: of two, the second may wait 40 ms for an acknowledgement.
        wbufsize = -1

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = self.rfile.read(length)
            headers = {name.lower(): text for name, text in self.headers.items()}
            status, body = rest.answer(self.command, self.path, body, headers)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            for name, text in rest.headers.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815  # the library's names

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        rest.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.002})
        thread.start()
        yield rest
        server.shutdown()
        thread.join()

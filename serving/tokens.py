"""Identifies callers by a bearer token before anything else, where the program was given tokens.

The module is pure ASGI. There are two kinds of token, in a file each: those of clients, and those
of the cluster's own programs. Requests that only programs of the cluster make need one of the
second kind.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from metasrv_base.errors import Refused
from metasrv_base.token import OwnToken, Tokens, read_tokens
from metasrv_base.wire.http.asgi import (
    Answering,
    App,
    Message,
    Receive,
    Scope,
    Send,
    given_id,
    new_id,
)

OPEN = frozenset({"/livez", "/readyz"})
"""Paths for probes that cannot hold a secret; they answer yes or no only."""
PAGES = frozenset({"/", "/docs", "/openapi.json"})
PAGE_FOLDERS = frozenset({"/docs", "/problems"})
"""Pages about the program, with the files directly below these folders (serving/pages/). A browser
cannot show a token, and they say only what the documents in this repository say
(docs/decisions/0180)."""
CLUSTER_PATHS = ("/internal/", "/node/v1/orders", "/node/v1/copies/")
"""Registration, heartbeats, the feed of the catalog, orders to nodes, and what copies of a region
say to each other."""
_CHALLENGE = (b"www-authenticate", b'Bearer realm="metasrv"')
_PAGE = "docs/operate/tokens.md"

log = structlog.get_logger()


class TokenBook:
    """The tokens that a program takes now. *cluster* None: there is one kind, for everything."""

    def __init__(self, clients: Tokens, cluster: Tokens | None = None) -> None:
        self._clients = clients
        self._cluster = cluster
        self._files: tuple[Path, Path | None] | None = None
        self.version = 0
        """Rises at every reload."""

    @classmethod
    def of_files(cls, clients: Path, cluster: Path | None) -> "TokenBook":
        """Raises ValueError for a file that others can read, or we cannot, or that holds none."""
        book = cls(read_tokens(clients), None if cluster is None else read_tokens(cluster))
        book._files = clients, cluster
        return book

    def reload(self) -> None:
        """Reads the files again. Raises ValueError, as `of_files`; then nothing is changed."""
        assert self._files is not None, "these tokens came from no file"
        new_book = TokenBook.of_files(*self._files)
        self._clients, self._cluster = new_book._clients, new_book._cluster
        self.version += 1

    def holder(self, token: str) -> str | None:
        """The name of the client or program that holds *token*; None: nobody holds it."""
        return self._clients.holder(token) or self.program(token)

    def program(self, token: str) -> str | None:
        """Returns the name of the cluster's program that holds the token; None: no program does."""
        return None if self._cluster is None else self._cluster.holder(token)

    def may(self, token: str, path: str) -> bool:
        """Whether its holder may ask for *path*; False where nobody holds it. Roles of clients
        would be judged here."""
        if path.startswith(CLUSTER_PATHS) and self._cluster is not None:
            return self.program(token) is not None
        return self.holder(token) is not None


class _Stream:
    """An answer on its way. One that is streamed is cut at its next piece once its token is
    revoked; any other was allowed when it was asked for, and is given."""

    def __init__(self, tokens: TokenBook, token: str, path: str, send: Send) -> None:
        self._tokens = tokens
        self._token = token
        self._path = path
        self._send = send
        self._version = tokens.version
        self.cut = asyncio.timeout(None)
        """Entered by the task that answers."""

    async def send(self, message: Message) -> None:
        if message.get("more_body") and self._tokens.version != self._version:
            self._version = self._tokens.version
            if not self._tokens.may(self._token, self._path):
                self.cut.reschedule(asyncio.get_running_loop().time())
                await asyncio.Event().wait()  # until that cancels us
        await self._send(message)


def _is_open(method: str, path: str) -> bool:
    """Whether a request needs no token."""
    if path in OPEN:
        return True
    is_page = path in PAGES or path.rpartition("/")[0] in PAGE_FOLDERS
    return is_page and method in ("GET", "HEAD")


class TokenMiddleware:
    """`scope["state"]["principal"]` is the name of who holds the token."""

    def __init__(self, app: App, tokens: TokenBook, refused: Callable[[int], None]) -> None:
        self._app = app
        self._tokens = tokens
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_open(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        token = bearer(scope)
        holder = self._tokens.holder(token)
        if not self._tokens.may(token, scope["path"]):
            await self._refuse(holder, scope, send)
            return
        scope.setdefault("state", {})["principal"] = holder
        stream = _Stream(self._tokens, token, scope["path"], send)
        try:
            async with stream.cut:
                await self._app(scope, receive, stream.send)
        except TimeoutError:
            if not stream.cut.expired():
                raise
            # the answer is incomplete, and so the server closes the connection
            log.warning("stream_cut", principal=holder, path=scope["path"], runbook=_PAGE)

    async def _refuse(self, holder: str | None, scope: Scope, send: Send) -> None:
        """Logged with where it came from, and never with what was shown."""
        answering = Answering(send, given_id(scope) or new_id())
        error = Refused("unauthenticated") if holder is None else Refused("cluster-token-needed")
        more = [_CHALLENGE] if holder is None else []
        await answering.refuse(error, scope["path"], more)
        self._refused(answering.status)
        log.warning(
            "request_not_allowed",
            status=answering.status,
            principal=holder,
            peer=(scope.get("client") or ("",))[0],
            method=scope["method"],
            path=scope["path"],
            runbook=_PAGE,
        )


def token_book(clients: Path | None, cluster: Path | None) -> TokenBook | None:
    """Reads the tokens; returns None if the program was given no files. Raises ValueError, as
    `TokenBook.of_files`."""
    return None if clients is None else TokenBook.of_files(clients, cluster)


class SecretFiles(Protocol):
    """The settings that name a program's files of tokens; None: the program has no such file."""

    @property
    def tokens_file(self) -> Path | None: ...
    @property
    def cluster_tokens_file(self) -> Path | None: ...
    @property
    def token_file(self) -> Path | None: ...


def secrets_of(files: SecretFiles) -> tuple[TokenBook | None, OwnToken]:
    """The tokens that a program takes (None: it asks for none), and the one that it shows.

    From now on SIGHUP reloads both. Call it in the program's event loop. Raises ValueError, as
    `TokenBook.of_files` and `OwnToken.of_file`.
    """
    book = token_book(files.tokens_file, files.cluster_tokens_file)
    own = OwnToken.of_file(files.token_file)
    read: list[TokenBook | OwnToken] = [own] if files.token_file else []
    if book is not None:
        read.append(book)
    if read:  # without a file SIGHUP ends the program, as it does any other
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, partial(_reload, read))
    return book, own


def _reload(secrets: Sequence[TokenBook | OwnToken]) -> None:
    for secret in secrets:
        try:
            secret.reload()
        except ValueError as error:
            log.error("tokens_not_reloaded", error=str(error), runbook=_PAGE)  # noqa: TRY400
        else:
            log.info("tokens_reloaded", what=type(secret).__name__)


def count_nothing(status: int) -> None:
    """Counts nothing; for programs without metrics."""


def guarded(
    app: App, tokens: TokenBook | None, refused: Callable[[int], None] = count_nothing
) -> App:
    """*tokens* None: the program listens on loopback and asks nobody. *refused* is called with the
    status of each refusal."""
    return app if tokens is None else TokenMiddleware(app, tokens, refused)


def bearer(scope: Scope) -> str:
    """The token of the one Authorization header; empty: none, or several."""
    values = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(values) != 1:
        return ""
    scheme, _, token = values[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""

"""Identifies callers by a bearer token before anything else, where the program was given tokens.

The module is pure ASGI. There are two kinds of token, in a file each: those of clients, and those
of the cluster's own programs. Requests that only programs of the cluster make need one of the
second kind.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import structlog

from base.errors import Refused
from base.token import Tokens, read_tokens
from base.wire.asgi import Answering, App, Receive, Scope, Send, given_id, new_id

OPEN = frozenset({"/livez", "/readyz"})
"""For probes that cannot hold a secret; they say nothing but yes or no."""
CLUSTER_PATHS = ("/internal/", "/node/v1/orders")
"""Registration, heartbeats, the feed of the catalog, and orders to nodes."""
_CHALLENGE = (b"www-authenticate", b'Bearer realm="metasrv"')
_PAGE = "docs/operate/tokens.md"

log = structlog.get_logger()


class TokenBook:
    """The tokens that a program takes now. *cluster* None: there is one kind, for everything."""

    def __init__(self, clients: Tokens, cluster: Tokens | None = None) -> None:
        self._clients = clients
        self._cluster = cluster
        self._files: tuple[Path, Path | None] | None = None

    @classmethod
    def of_files(cls, clients: Path, cluster: Path | None) -> "TokenBook":
        """Raises ValueError for a file that others can read, or we cannot, or that holds none."""
        book = cls(read_tokens(clients), None if cluster is None else read_tokens(cluster))
        book._files = clients, cluster
        return book

    def reload(self) -> None:
        """Reads the files again; one that is wrong changes nothing."""
        assert self._files is not None, "these tokens came from no file"
        try:
            news = TokenBook.of_files(*self._files)
        except ValueError as error:
            log.error("tokens_not_reloaded", error=str(error), runbook=_PAGE)  # noqa: TRY400
            return
        self._clients, self._cluster = news._clients, news._cluster
        log.info("tokens_reloaded")

    def reload_on_hangup(self) -> None:
        """From now on SIGHUP reloads them. Call it in the program's event loop."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def holder(self, token: str) -> str | None:
        """The name of the client or program that holds *token*; None: nobody holds it."""
        return self._clients.holder(token) or self.program(token)

    def program(self, token: str) -> str | None:
        """Which program of the cluster holds it; None: none."""
        return None if self._cluster is None else self._cluster.holder(token)

    def may(self, token: str, path: str) -> bool:
        """Whether whoever holds it may ask for *path*. Roles of clients would be judged here."""
        is_internal = path.startswith(CLUSTER_PATHS)
        return not is_internal or self._cluster is None or self.program(token) is not None


class TokenDoor:
    """`scope["state"]["principal"]` is the name of who holds the token."""

    def __init__(self, app: App, tokens: TokenBook, refused: Callable[[int], None]) -> None:
        self._app = app
        self._tokens = tokens
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        token = bearer(scope)
        holder = self._tokens.holder(token)
        if holder is None or not self._tokens.may(token, scope["path"]):
            await self._refuse(holder, scope, send)
            return
        scope.setdefault("state", {})["principal"] = holder
        await self._app(scope, receive, send)

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
    """From now on reloaded by SIGHUP. None: the program was given no tokens."""
    if clients is None:
        return None
    book = TokenBook.of_files(clients, cluster)
    book.reload_on_hangup()
    return book


def count_nothing(status: int) -> None:
    """Where nobody counts."""


def guarded(
    app: App, tokens: TokenBook | None, refused: Callable[[int], None] = count_nothing
) -> App:
    """*tokens* None: the program listens on loopback and asks nobody. *refused* is called with the
    status of each refusal."""
    return app if tokens is None else TokenDoor(app, tokens, refused)


def bearer(scope: Scope) -> str:
    """The token of the one Authorization header; empty: none, or several."""
    given = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""

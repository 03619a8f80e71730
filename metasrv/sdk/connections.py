"""Connects a client: `with connect("http://127.0.0.1:4000") as db:`."""

from collections.abc import Sequence

from metasrv.sdk.client import PATIENCE_MS, AsyncClient
from metasrv.sdk.sync import Client
from metasrv.sdk.urls import urls_of


def connect(
    url: str | Sequence[str],
    *,
    patience_ms: int = PATIENCE_MS,
    token: str | None = None,
    expects_running: bool = False,
) -> Client:
    """A client for plain code. Several URLs: any of them serves, and one that is gone is passed
    over. Asks nothing yet. `patience_ms`: how long a request waits for a service that is silent.
    `token`: of a service that asks for one; it is shown to its nodes too. `expects_running`: until
    the service has answered once, an address without a server is an error at once; an election is
    waited for.
    """
    return Client(
        urls_of(url), patience_ms=patience_ms, token=token, expects_running=expects_running
    )


def connect_async(
    url: str | Sequence[str], *, patience_ms: int = PATIENCE_MS, token: str | None = None
) -> AsyncClient:
    """A client for one event loop."""
    return AsyncClient(urls_of(url), patience_ms=patience_ms, learns=True, token=token)

"""One program's HTTP server: uvicorn behind our guard, with signals left to the program."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from serving.guard import Bounds, GuardedConfig

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names by which a server that listens on loopback may be addressed; and so no foreign one."""
KEEP_ALIVE_S = (
    5  # idle connections; our own clients end theirs before (metasrv_base/wire/http/client.py)
)
BACKLOG = 1_024


class Server(uvicorn.Server):
    """Says when it listens; ends by `should_exit`."""

    def __init__(self, app: Any, host: str, *, drain_s: int) -> None:
        """Prepares a server of *app*. *drain_s* is the time that answers under way at the end may
        take; then they are cut."""
        hosts = LOOPBACK if host in LOOPBACK or f"[{host}]" in LOOPBACK else None
        super().__init__(GuardedConfig(app, Bounds(hosts), **_settings(drain_s)))
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _settings(drain_s: int) -> dict[str, Any]:
    return {
        "log_config": None,
        "access_log": False,
        "lifespan": "off",
        "ws": "none",
        "server_header": False,
        "proxy_headers": False,  # who asks is who connected, whatever the request says
        "timeout_keep_alive": KEEP_ALIVE_S,
        "timeout_graceful_shutdown": drain_s,
        "backlog": BACKLOG,
    }

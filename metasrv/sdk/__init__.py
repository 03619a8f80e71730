"""The names that users import: `from metasrv.sdk import connect, Conflict`.

A name is loaded when it is first used (PEP 562), so that a command that needs one module of the
SDK does not load all of them. Every other package of ours is empty (S22).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metasrv.sdk.client import AsyncClient
    from metasrv.sdk.connections import connect, connect_async
    from metasrv.sdk.control.planned import Planned
    from metasrv.sdk.sync import Client
    from metasrv_base.errors import (
        Conflict,
        Corrupt,
        MetaError,
        NotFound,
        NotLeader,
        Refused,
        Unavailable,
        Unknown,
    )
    from metasrv_base.wire.api.tables import TableSpec

__all__ = [
    "AsyncClient",
    "Client",
    "Conflict",
    "Corrupt",
    "MetaError",
    "NotFound",
    "NotLeader",
    "Planned",
    "Refused",
    "TableSpec",
    "Unavailable",
    "Unknown",
    "connect",
    "connect_async",
]

_HOMES = {
    "AsyncClient": "metasrv.sdk.client",
    "Client": "metasrv.sdk.sync",
    "Planned": "metasrv.sdk.control.planned",
    "TableSpec": "metasrv_base.wire.api.tables",
    "connect": "metasrv.sdk.connections",
    "connect_async": "metasrv.sdk.connections",
}
_ERRORS = "metasrv_base.errors"


def __dir__() -> list[str]:
    """The names that users import; a shell completes them."""
    return list(__all__)


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, _ERRORS)), name)

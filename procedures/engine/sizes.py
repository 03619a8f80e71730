"""Whether what a procedure is going to store fits a transaction: told before its first effect (G6).

A change that is published in several transactions must not meet the limit in a later one. What the
last of them stores is known from the first, but for what a record gathers on its way: its timeline,
its controls, its transitions and its error, for which ROOM_BYTES are left.
"""

from keys.model.records import ProcedureRecord
from keys.model.tables import TableInfo, TableRoute
from keys.store.kv import TXN_BYTES_MAX
from keys.value import encode
from metasrv_base.errors import Refused

ROOM_BYTES = 192 << 10
COPIES = 2  # of what is published: its own key, and its log entry


def record_must_fit(record: ProcedureRecord) -> None:
    """Raises Refused("ddl-too-large"). *record* as it is submitted: its history holds it whole."""
    _must_fit(len(encode(record)), "a procedure")


def altered_must_fit(last: TableInfo, route: TableRoute, record_bytes: int) -> None:
    """Raises Refused("ddl-too-large"). *last*: the table at its largest on its way.

    A table that could be altered and not be dropped or undropped would be there for good: those
    publish its route too.
    """
    info_bytes = len(encode(last))
    _must_fit(COPIES * info_bytes + record_bytes, f"a table of {info_bytes} bytes")
    route_bytes = len(encode(route))
    what = f"a table of {info_bytes} bytes with a route of {route_bytes}"
    _must_fit(COPIES * (info_bytes + route_bytes), what)


def _must_fit(size_bytes: int, what: str) -> None:
    if size_bytes + ROOM_BYTES > TXN_BYTES_MAX:
        raise Refused(
            "ddl-too-large",
            needs=f"{size_bytes + ROOM_BYTES} bytes for {what}",
            limit=f"{TXN_BYTES_MAX} bytes",
        )

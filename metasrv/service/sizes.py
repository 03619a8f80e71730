"""Whether a table to create will fit its transactions: told before any node is asked."""

from base.errors import Refused
from keys.kv import TXN_BYTES_MAX, TXN_OPS_MAX
from keys.records import Submission
from keys.tables import TableInfo, TableRoute
from keys.value import encode

ROUTE_BYTES_MAX = 256 << 10  # docs/protocols.md P1, Sizes: about 1,024 regions
COPIES = 3  # of info and route in the commit: their own keys, the log entry, the history
OTHER_OPERATIONS = 12  # keys, log, version, record, history, fence: all that is not per node
OTHER_BYTES = 4 << 10  # keys and the small values


def must_fit(info: TableInfo, route: TableRoute, client: Submission) -> None:
    """Raises Refused("ddl-too-large") with the numbers."""
    route_bytes = len(encode(route))
    if route_bytes > ROUTE_BYTES_MAX:
        regions = len(route.region_routes)
        raise Refused(
            "ddl-too-large",
            needs=f"a route of {route_bytes} bytes for {regions} regions",
            limit=f"{ROUTE_BYTES_MAX} bytes",
        )
    operations = OTHER_OPERATIONS + len(route.numbers_by_node())
    if operations > TXN_OPS_MAX:
        raise Refused("ddl-too-large", needs=f"{operations} operations", limit=TXN_OPS_MAX)
    statement = len(client.model_dump_json())
    size = COPIES * (len(encode(info)) + route_bytes) + statement + OTHER_BYTES
    if size > TXN_BYTES_MAX:
        raise Refused("ddl-too-large", needs=f"{size} bytes", limit=f"{TXN_BYTES_MAX} bytes")

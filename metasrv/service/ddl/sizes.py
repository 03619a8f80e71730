"""Whether a table to create will fit its transactions: told before any node is asked."""

from keys.model.tables import TableInfo, TableRoute
from keys.store.kv import TXN_BYTES_MAX, TXN_OPS_MAX
from keys.value import encode
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.errors import Refused

ROUTE_BYTES_MAX = 256 << 10  # docs/protocols.md P1, Sizes: about 1,024 regions
COPIES = 3  # of info and route in the commit: their own keys, the log entry, the history
OTHER_OPERATIONS = 12  # keys, log, version, record, history, fence: all that is not per node
OTHER_BYTES = 4 << 10  # keys and the small values


COLUMN_BYTES = 256  # of a column in JSON, beside what the request says of it
ROUTE_BYTES = 384  # of a region in JSON, or of a copy, beside its root
TIMES_LONGER = 8  # a number as it is stored, at most, by its length in a request: 1e5 is 100000.0


def must_fit(info: TableInfo, route: TableRoute, context: RequestContext) -> None:
    """Raises Refused("ddl-too-large") with the numbers. What is small by all bounds is not made
    into JSON to be measured."""
    if at_most(info, route, context.body_bytes) <= ROUTE_BYTES_MAX:
        return
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
    statement = len(context.client().model_dump_json())
    size = COPIES * (len(encode(info)) + route_bytes) + statement + OTHER_BYTES
    if size > TXN_BYTES_MAX:
        raise Refused("ddl-too-large", needs=f"{size} bytes", limit=f"{TXN_BYTES_MAX} bytes")


def at_most(info: TableInfo, route: TableRoute, body_bytes: int | None) -> int:
    """An upper bound of all that is measured: all texts of *info* are of the request's body, whose
    length is *body_bytes* as it was sent; None: it is not known. Small only for few regions, so
    that few nodes are written to."""
    if body_bytes is None or len(route.region_routes) > OTHER_OPERATIONS:
        return TXN_BYTES_MAX + 1
    body = TIMES_LONGER * body_bytes
    columns = COLUMN_BYTES * (len(info.columns) + OTHER_OPERATIONS)
    roots = 0
    for region in route.region_routes:
        roots += ROUTE_BYTES + TIMES_LONGER * len(region.root)
        for copy in region.copies:
            roots += ROUTE_BYTES + TIMES_LONGER * (len(copy.node) + len(copy.root))
    return COPIES * (body + columns + roots) + body + OTHER_BYTES

"""A route and its reverse: TableRoute and every DatanodeTable change in one transaction."""

from keys.commit.txn import Txn
from keys.model.log import RouteChanged
from keys.model.tables import (
    DatanodeTable,
    DatanodeTableKey,
    RegionRoute,
    TableRoute,
    TableRouteKey,
)


def put_route(txn: Txn, before: TableRoute | None, after: TableRoute | None) -> Txn:
    """*txn* with the route and what follows from it. It must have read the TableRoute.

    *before* None: it is new; *after* None: it goes away.
    """
    either = before or after
    assert either is not None
    key = TableRouteKey(either.table_id)
    txn = txn.delete(key) if after is None else txn.put(key, after)
    old = before.numbers_by_node() if before else {}
    new = after.numbers_by_node() if after else {}
    for node in old.keys() - new.keys():
        txn = txn.delete(DatanodeTableKey(node, either.table_id), derived_from=key)
    for node, numbers in new.items():
        assert after is not None
        value = DatanodeTable(table_id=either.table_id, version=after.version, regions=numbers)
        txn = txn.put(DatanodeTableKey(node, either.table_id), value, derived_from=key)
    return txn


def change_regions(txn: Txn, route: TableRoute, changed: tuple[RegionRoute, ...]) -> Txn:
    """*txn* with *changed* in place of the regions of the same ids, and with its log entry."""
    after = route.with_regions(changed)
    entry = RouteChanged(table_id=route.table_id, version=after.version, regions=changed)
    return put_route(txn, route, after).log(entry)

"""Comparison of the client's requirements, taken at submit, under the locks (docs/protocols.md
P1)."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Protocol, TypeVar

from keys.commit.txn import Snapshot
from keys.model.records import ClientRequirements, Resource
from keys.model.tables import TableInfo, TableInfoKey, TableNameKey, TableNameRecord
from metasrv_base.errors import Conflict, NotFound
from procedures.context import Context
from procedures.machine import Act, Done, Outcome, ProcedureState

S = TypeVar("S", bound=ProcedureState)
APPLIED = "applied"  # of a result; it is there only as False


class OfTable(Protocol):
    """The state of a procedure about one table."""

    @property
    def catalog(self) -> str: ...
    @property
    def schema_name(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def table_id(self) -> int: ...


async def required_table(context: Context, state: OfTable) -> tuple[Snapshot, TableInfo]:
    """The table, and the snapshot that it was read in, if all that was required still holds."""
    key = TableInfoKey(state.table_id)
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    snapshot = await context.snapshot(key, name)
    require_same_table(context.client, name, snapshot.get(name))
    info = snapshot.must(key)
    require_version(context.client, info)
    return snapshot, info


def require_same_table(
    client: ClientRequirements, key: TableNameKey, record: TableNameRecord | None
) -> None:
    """The name still means the table it resolved to at submit; never silently another one."""
    name = f"{key.catalog}.{key.schema}.{key.table}"
    if record is None:
        raise NotFound("table-not-found", table=name)
    if client.table_id is not None and record.table_id != client.table_id:
        raise Conflict("schema-conflict", name=name, table_id=client.table_id, now=record.table_id)


def require_version(client: ClientRequirements, info: TableInfo) -> None:
    """Raises Conflict unless the client's If-Match still matches."""
    require_same_version(client, info.full_name, info.version)


def require_same_version(client: ClientRequirements, name: str, version: int) -> None:
    """Raises Conflict unless the client's If-Match still matches the object of that full name."""
    if client.if_version is not None and version != client.if_version:
        raise Conflict(name=name, expected=client.if_version, found=version)


def _nothing_more(state: Any) -> tuple[str, ...]:
    return ()


def ends_if_missing(
    act: Act[S],
    resource: Callable[[S], Resource],
    also: Callable[[S], tuple[str, ...]] = _nothing_more,
) -> Act[S]:
    """*act*; with `if_exists`, NotFound of the resource, or of what *also* names, is its end:
    a success that changes nothing. Anything else that *act* does not find is an error."""

    @wraps(act)
    async def tolerant(state: S, context: Context) -> Outcome[S]:
        try:
            return await act(state, context)
        except NotFound as error:
            client, missing = context.client, error.facts.get("table") or error.facts.get("name")
            may_miss = client.if_exists and client.if_version is None
            if not may_miss or missing not in (resource(state).name, *also(state)):
                raise
            return Done(state, not_applied(resource(state)))

    return tolerant


def not_applied(resource: Resource) -> dict[str, Any]:
    """The result of a change whose object did not exist."""
    return {"name": resource.name, APPLIED: False}


def is_not_applied(result: Mapping[str, Any] | None) -> bool:
    return result is not None and result.get(APPLIED) is False

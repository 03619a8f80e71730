"""Commands of a batch that its record cannot hold: they are in parts, and the record says where.

The record also says what must be known without reading them: the locks, and what the batch claims
of tenants. Many locks become few wider ones: of a schema instead of each of its names.
"""

from collections.abc import Iterable
from itertools import chain

from pydantic import TypeAdapter

from keys.commit.staged_parts import read_parts
from keys.model.catalogs import CatalogLimits
from keys.model.log import StagedRef
from keys.model.records import Lock
from keys.model.staging.parts import BatchPart
from keys.value import StoredPart
from metasrv_base.concurrency.turns import Turns, by_turns
from metasrv_base.errors import Refused
from procedures.context import Context
from procedures.kinds.batch.members import Member, locks_of
from procedures.locking.locks import (
    catalog_key,
    distinct,
    exclusive,
    is_placement,
    route_key,
    schema_key,
)
from procedures.tenant_claim import TenantClaim

LOCKS_MAX = 1_000  # of one batch whose commands are in parts
_MEMBER: TypeAdapter[Member] = TypeAdapter(Member)


class StagedClaim(StoredPart):
    """A `TenantClaim` as the record stores it."""

    catalog: str
    tables: dict[int, int]
    limits: CatalogLimits | None


class StagedMembers(StoredPart):
    parts: StagedRef
    count: int
    locks: tuple[Lock, ...]
    claims: tuple[StagedClaim, ...]

    def tenant_claims(self) -> tuple[TenantClaim, ...]:
        return tuple(
            TenantClaim(claim.catalog, claim.tables, claim.limits) for claim in self.claims
        )


def staged(
    members: tuple[Member, ...], parts: StagedRef, claims: Iterable[TenantClaim]
) -> StagedMembers:
    """Raises Refused("ddl-too-large") where its locks are too many.

    Routes of tables that are made are locked one by one: what nodes report of such a table is not
    taken for a leftover then.
    """
    claims = tuple(claims)
    routes = (exclusive(route_key(table_id)) for claim in claims for table_id in claim.tables)
    return StagedMembers(
        parts=parts,
        count=len(members),
        locks=(*wide_locks(chain.from_iterable(map(locks_of, members))), *routes),
        claims=tuple(
            StagedClaim(catalog=claim.catalog, tables=dict(claim.tables), limits=claim.limits)
            for claim in claims
        ),
    )


def wide_locks(locks: Iterable[Lock]) -> tuple[Lock, ...]:
    """Locks that exclude all that *locks* do, but of routes: a name is locked with its schema,
    which whoever changes something in it holds shared. So are the definitions of its tables."""
    wide: list[Lock] = []
    for lock in locks:
        kind, _, name = lock.key.partition(":")
        if kind == "name":
            catalog, schema, _ = name.split(".")
            wide.append(exclusive(schema_key(catalog, schema)))
        elif kind != "table" and not is_placement(lock.key):
            wide.append(lock)
    few = distinct(*wide)
    if len(few) > LOCKS_MAX:
        few = distinct(*map(_of_catalog, few))
    if len(few) > LOCKS_MAX:
        raise Refused("ddl-too-large", needs=f"{len(few)} locks", limit=LOCKS_MAX)
    return few


def _of_catalog(lock: Lock) -> Lock:
    """A lock of a schema as one of its catalog, which everybody in it holds shared."""
    kind, _, name = lock.key.partition(":")
    return exclusive(catalog_key(name.partition(".")[0])) if kind == "schema" else lock


async def members_in(staged: StagedMembers, context: Context) -> tuple[Member, ...]:
    """The commands, from their parts. Raises Corrupt if they are not whole."""
    ports = context.ports
    parts = await read_parts(ports.kv, staged.parts, deadline_ms=ports.deadline_ms)
    return await by_turns(_members(await by_turns(parts.decoded())))


def _members(parts: Iterable[BatchPart]) -> Turns[tuple[Member, ...]]:
    """A part in a turn."""
    members: list[Member] = []
    for part in parts:
        members += map(_MEMBER.validate_python, part.members)
        yield
    return tuple(members)

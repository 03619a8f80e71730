"""Who holds which lock: a pure function of the stored records (PROTOCOLS P2).

In order of submission each procedure takes all its locks at once, or waits; nobody overtakes a
waiter on one of its keys; nothing is taken later. So there is no deadlock and no starvation, and a
new leader computes the same holders though no grant was ever written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from base.ids import RegionId, table_of
from keys.records import Lock, LockMode


@dataclass(frozen=True, slots=True)
class Claim:
    """What a live procedure wants to hold from its grant to its end."""

    procedure: str
    submission: int
    locks: tuple[Lock, ...]
    parent: str | None = None
    runs: bool = False
    """It runs here already: a record that turns up late does not take its place. For a new leader
    nothing runs yet, so there the records alone decide."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why a claim waits: *by* holds, or waits before it for, the same *key*."""

    key: str
    by: str


Holders = Mapping[str, tuple[Blocked, ...]]
"""Procedure -> what blocks it; none: it holds all its locks."""


def holders(claims: Iterable[Claim]) -> Holders:
    """Every claim, with what blocks it."""
    before: dict[str, list[tuple[Claim, LockMode]]] = {}
    known = {claim.procedure: claim for claim in claims}
    blocked: dict[str, tuple[Blocked, ...]] = {}
    for claim in sorted(known.values(), key=lambda claim: (not claim.runs, claim.submission)):
        elders = _elders(claim, known)
        family = {elder.procedure for elder in elders}
        found: list[Blocked] = []
        for lock in claim.locks:
            cover = next((elder for elder in elders if _covers(elder, lock)), None)
            found += [
                Blocked(lock.key, other.procedure)
                for other, mode in before.get(lock.key, ())
                if LockMode.EXCLUSIVE in (mode, lock.mode)
                and other.procedure not in family
                and (cover is None or cover in _elders(other, known))
            ]
            if cover is not None and blocked.get(cover.procedure):
                found.append(Blocked(lock.key, cover.procedure))
        blocked[claim.procedure] = tuple(found)
        for lock in claim.locks:
            before.setdefault(lock.key, []).append((claim, lock.mode))
    return blocked


def _elders(claim: Claim, known: Mapping[str, Claim]) -> tuple[Claim, ...]:
    """Its parent, the parent's parent, ...: a child runs under their locks."""
    found: list[Claim] = []
    parent = claim.parent
    while parent is not None and parent in known:
        found.append(known[parent])
        parent = known[parent].parent
    return tuple(found)


def _covers(elder: Claim, lock: Lock) -> bool:
    """Whether nobody but the elder's family can hold *lock*, so that its child need not queue.

    Were a child to queue behind a stranger that waits for its parent, nobody would ever go on.
    """
    route = _route_of(lock.key)
    return any(
        (held.key == lock.key and held.mode in (LockMode.EXCLUSIVE, lock.mode))
        or (held.key == route and held.mode is LockMode.EXCLUSIVE)
        for held in elder.locks
    )


def _route_of(key: str) -> str | None:
    """The lock that everybody takes who takes this region."""
    side, _, region = key.partition(":")
    return route_key(table_of(RegionId(int(region)))) if side == "region" else None


# The two sides, in their order. Whoever holds a placement lock never waits for a schema lock.


def shared(key: str) -> Lock:
    return Lock(key=key, mode=LockMode.SHARED)


def exclusive(key: str) -> Lock:
    return Lock(key=key, mode=LockMode.EXCLUSIVE)


def catalog_key(catalog: str) -> str:
    return f"catalog:{catalog}"


def schema_key(catalog: str, schema: str) -> str:
    return f"schema:{catalog}.{schema}"


def name_key(catalog: str, schema: str, table: str) -> str:
    return f"name:{catalog}.{schema}.{table}"


def table_key(table_id: int) -> str:
    return f"table:{table_id}"


def node_key(node: str) -> str:
    return f"node:{node}"


def route_key(table_id: int) -> str:
    return f"route:{table_id}"


def region_key(region_id: str) -> str:
    return f"region:{region_id}"


def in_schema(catalog: str, schema: str, *locks: Lock) -> tuple[Lock, ...]:
    """*locks*, under a catalog and a schema that must stay."""
    return (shared(catalog_key(catalog)), shared(schema_key(catalog, schema)), *locks)


def whole_table(catalog: str, schema: str, name: str, table_id: int) -> tuple[Lock, ...]:
    """Of a procedure after which the table is there, or is not: both sides, exclusively."""
    return in_schema(
        catalog,
        schema,
        exclusive(name_key(catalog, schema, name)),
        exclusive(table_key(table_id)),
        exclusive(route_key(table_id)),
    )


def distinct(*locks: Lock) -> tuple[Lock, ...]:
    """Each key once, with the stronger mode: a rename within one schema names it twice."""
    strongest: dict[str, Lock] = {}
    for lock in locks:
        if strongest.get(lock.key, lock).mode is not LockMode.EXCLUSIVE:
            strongest[lock.key] = lock
        strongest.setdefault(lock.key, lock)
    return tuple(strongest.values())

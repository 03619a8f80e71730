"""The keys that procedures lock, and the two sides they lie on (docs/protocols.md P2)."""

from functools import lru_cache

from keys.model.records import Lock, LockMode

LOCKS_KEPT = 4_096  # values made lately: one procedure names each of its locks several times
SCHEMA_SIDE = frozenset({"catalog", "tenant", "schema", "name", "table", "placement", "tablespace"})
PLACEMENT = frozenset({"route", "region"})


def is_schema_side(key: str) -> bool:
    return key.partition(":")[0] in SCHEMA_SIDE


def is_placement(key: str) -> bool:
    return key.partition(":")[0] in PLACEMENT


# The two sides, in their order. Whoever holds a placement lock never waits for a schema lock.


@lru_cache(LOCKS_KEPT)
def shared(key: str) -> Lock:
    return Lock(key=key, mode=LockMode.SHARED)


@lru_cache(LOCKS_KEPT)
def exclusive(key: str) -> Lock:
    return Lock(key=key, mode=LockMode.EXCLUSIVE)


def catalog_key(catalog: str) -> str:
    return f"catalog:{catalog}"


def tenant_key(catalog: str) -> str:
    """The key of a catalog's settings and limits."""
    return f"tenant:{catalog}"


def schema_key(catalog: str, schema: str) -> str:
    return f"schema:{catalog}.{schema}"


def placement_key(placement: str) -> str:
    return f"placement:{placement}"


def tablespace_key(catalog: str, tablespace: str) -> str:
    return f"tablespace:{catalog}.{tablespace}"


def name_key(catalog: str, schema: str, table: str) -> str:
    return f"name:{catalog}.{schema}.{table}"


def table_key(table_id: int) -> str:
    return f"table:{table_id}"


def node_key(node: str) -> str:
    return f"node:{node}"


def orphans_key(node: str) -> str:
    """The key by which folders of a node go into quarantine and from there one batch at a time."""
    return f"orphans:{node}"


def route_key(table_id: int) -> str:
    return f"route:{table_id}"


def region_key(region_id: str) -> str:
    return f"region:{region_id}"


def copies_key(region_id: str) -> str:
    """The key by which moves of a region's copies come one after the other. Nobody who holds it
    waits for a region that another holds by `region_key`."""
    return f"copies:{region_id}"


def in_schema(catalog: str, schema: str, *locks: Lock) -> tuple[Lock, ...]:
    """*locks*, under a catalog and a schema that must stay."""
    return (shared(catalog_key(catalog)), shared(schema_key(catalog, schema)), *locks)


def placing_of_table(
    catalog: str, placement: str | None, tablespace: str | None
) -> tuple[Lock, ...]:
    """Locks of a procedure that makes a table in these; None: the default, which nobody drops."""
    return (
        *([] if placement is None else [shared(placement_key(placement))]),
        *([] if tablespace is None else [shared(tablespace_key(catalog, tablespace))]),
    )


def whole_table(catalog: str, schema: str, name: str, table_id: int) -> tuple[Lock, ...]:
    """Locks of a procedure that creates or removes a table: both sides, exclusively."""
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

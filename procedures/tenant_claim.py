"""Claims of procedures on the limits of their tenants, until they are over. Plain data."""

from collections.abc import Mapping
from dataclasses import field

from keys.catalog.catalog import Catalog
from keys.model.catalogs import CatalogLimits
from keys.model.records import Lock, LockMode
from metasrv_base.values.frozen import frozen

CATALOG = "catalog:"  # of the lock of a catalog, before its name


@frozen
class TenantClaim:
    catalog: str
    tables: Mapping[int, int] = field(default_factory=dict)
    """Table that it makes or brings back -> number of its regions. It counts until the catalog has
    the table."""
    limits: CatalogLimits | None = None
    """Limits that it sets: they hold from its submission on, where they are the lower ones."""


def tenants_of(locks: tuple[Lock, ...]) -> set[str]:
    """Returns the catalogs whose objects the holder of *locks* changes: those that must stay, not
    those that it makes or drops."""
    tenants = set()
    for lock in locks:
        if lock.mode is LockMode.SHARED and lock.key.startswith(CATALOG):
            tenants.add(lock.key.removeprefix(CATALOG))
    return tenants


def no_claims(state: object, catalog: Catalog) -> tuple[TenantClaim, ...]:
    """Returns none; for kinds that make no table."""
    return ()

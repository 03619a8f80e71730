"""Some versions of the log in a row: their updates, and the catalogs around each. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from keys.commit.staged_parts import WholeItem
from keys.model.log import CatalogUpdate


@dataclass(frozen=True, slots=True)
class LogWindow:
    """`catalogs`: that before the first update, then that after each; they share what is equal."""

    catalogs: tuple[Catalog, ...]
    updates: tuple[CatalogUpdate, ...]

    @property
    def base(self) -> int:
        """The version before the first update."""
        return self.catalogs[0].version

    @property
    def last(self) -> int:
        return self.catalogs[-1].version

    def has_update(self, version: int) -> bool:
        return self.base < version <= self.last

    def has(self, version: int) -> bool:
        """Whether the catalog of *version* is in it."""
        return self.base <= version <= self.last

    def at(self, version: int) -> Catalog:
        """The catalog of *version*, which `has` says is here."""
        assert self.has(version)
        return self.catalogs[version - self.base]

    def update(self, version: int) -> CatalogUpdate:
        """The update that made *version*, which `has_update` says is here."""
        assert self.has_update(version)
        return self.updates[version - self.base - 1]


def window_of(base: Catalog, items: Iterable[WholeItem]) -> LogWindow:
    """Applies *items*, the stored updates above *base* in order. Raises Corrupt for one that cannot
    follow."""
    catalogs, updates = [base], list[CatalogUpdate]()
    for item in items:
        update = item.decoded()
        catalogs.append(catalogs[-1].apply(update, item.item.mod_revision))
        updates.append(update)
    return LogWindow(tuple(catalogs), tuple(updates))

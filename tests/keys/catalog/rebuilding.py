"""Random logs as the store holds them, with the catalog of each version; and rebuilds of those."""

from collections.abc import Sequence
from dataclasses import fields

from keys.catalog.catalog import Catalog
from keys.catalog.rebuild import Rebuild
from keys.commit.staged_parts import WholeItem
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.store.kv import KeyValue
from keys.value import encode
from metasrv_base.concurrency.turns import at_once
from tests.keys.catalog.logs import World, first_update, update


def random_log(seed: int, versions: int) -> tuple[list[KeyValue], list[Catalog]]:
    """Updates 1 to *versions*, and the catalogs of versions 0 to *versions*."""
    world, catalogs = World(seed), [Catalog()]
    updates = [first_update()]
    updates += [update(version, world.entry()) for version in range(2, versions + 1)]
    for each in updates:
        catalogs.append(catalogs[-1].apply(each, each.version + 7))
    return [stored(each) for each in updates], catalogs


def stored(one: CatalogUpdate) -> KeyValue:
    revision = one.version + 7
    return KeyValue(bytes(CatalogUpdateKey(one.version)), encode(one), revision, revision)


def rebuilt(log: Sequence[KeyValue], base: Catalog, later: Catalog, to: int) -> Catalog:
    fold = Rebuild(base, later, to)
    fold.take(map(WholeItem, log[base.version : to]))
    return at_once(fold.finished())


def must_be_equal(found: Catalog, expected: Catalog) -> None:
    """All that they say; not how the names are cut into chunks, nor states that no region has."""
    for each in fields(Catalog):
        left, right = getattr(found, each.name), getattr(expected, each.name)
        match each.name:
            case "ordered":
                left, right = (
                    {key: list(names) for key, names in one.items()} for one in (left, right)
                )
            case "states":
                left, right = ({key: n for key, n in one.items() if n} for one in (left, right))
            case "shapes":
                continue
        assert left == right, each.name

"""Routes whose regions have copies, and those whose regions have none."""

import json
from typing import ClassVar

import pytest

from keys.commit.staged_parts import is_staged
from keys.model.log import (
    CatalogUpdate,
    Entry,
    RouteChanged,
    StagedRef,
    TableCreated,
    TableUndropped,
    format_of,
)
from keys.model.tables import RegionRoute, TableRoute
from keys.value import NewerFormat, StoredModel, decode, encode
from tests.keys.model.copied_routes import COPIED, FIRST, ROUTE
from tests.metasrv.nodes.samples import info


class EarlierRoute(StoredModel):
    """A route as servers read it that know of no copies."""

    newest_format: ClassVar[int] = 1

    table_id: int
    version: int
    region_routes: tuple[dict[str, object], ...]


def test_given_regions_with_one_copy_when_stored_then_the_bytes_are_those_of_before() -> None:
    assert encode(ROUTE) == (
        b'{"format":1,"table_id":1024,"version":1,"region_routes":[{"region_id":"4398046511104",'
        b'"leader":"dn-1","followers":[],"epoch":3,"state":"open","root":"/dn-1/a-3",'
        b'"announced":true,"borrows":[],"unannounced":[]}]}'
    )


def test_given_a_region_that_gets_copies_when_stored_then_the_route_is_read_again() -> None:
    route = ROUTE.with_regions((COPIED,))
    stored = encode(route)

    assert decode(TableRoute, stored, key="k") == route
    assert json.loads(stored)["region_routes"][0]["copies"] == [
        {"node": "dn-2", "root": "/dn-2/a-3", "role": "in-sync"},
        {"node": "dn-3", "root": "/dn-3/a-1", "role": "learner"},
    ]


def test_given_a_route_with_copies_when_an_earlier_server_reads_it_then_it_is_newer() -> None:
    with pytest.raises(NewerFormat):
        decode(EarlierRoute, encode(ROUTE.with_regions((COPIED,))), key="k")


def test_given_copies_that_go_when_stored_then_the_route_is_of_the_first_format() -> None:
    assert ROUTE.with_regions((COPIED,)).with_regions((FIRST,)).format == 1


def entries_with(region: RegionRoute) -> tuple[Entry, ...]:
    route = ROUTE.with_regions((region,))
    return (
        RouteChanged(table_id=1024, version=2, regions=(region,)),
        TableCreated(info=info(), route=route),
        TableUndropped(info=info(), route=route),
    )


@pytest.mark.parametrize(("region", "number"), [(FIRST, 2), (COPIED, 5)])
def test_given_a_region_in_an_entry_when_logged_then_the_format_says_if_it_has_copies(
    region: RegionRoute, number: int
) -> None:
    for entry in entries_with(region):
        assert format_of((entry,)) == number
    assert number <= CatalogUpdate.newest_format


@pytest.mark.parametrize(("region", "number"), [(FIRST, 4), (COPIED, 5)])
def test_given_entries_in_parts_when_stored_then_the_update_says_if_a_part_has_copies(
    region: RegionRoute, number: int
) -> None:
    for entry in entries_with(region):
        update = CatalogUpdate(
            format=format_of((entry,)), version=3, at_ms=1, procedure=None, entries=(entry,)
        )
        staged = update.without_entries(StagedRef(batch="b", parts=1, size_bytes=1, digest="0"))

        assert (staged.format, is_staged(encode(staged))) == (number, True)
        assert not is_staged(encode(update))


def test_given_a_region_with_copies_then_each_node_has_its_number_and_some_are_in_sync() -> None:
    route = ROUTE.with_regions((COPIED,))

    assert route.numbers_by_node() == {"dn-1": (0,), "dn-2": (0,), "dn-3": (0,)}
    assert COPIED.nodes == ("dn-1", "dn-2", "dn-3")
    assert COPIED.in_sync == ("dn-1", "dn-2")
    assert COPIED.roots == ("/dn-1/a-3", "/dn-2/a-3", "/dn-3/a-1")

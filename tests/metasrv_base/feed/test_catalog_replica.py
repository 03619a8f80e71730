"""Lines that cannot follow are refused by the reader: a gap is never passed over."""

from dataclasses import replace

import pytest

from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.state.feed_tables import feed_table
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt
from metasrv_base.feed.catalog_replica import CatalogReplica, FeedReader
from metasrv_base.wire.frontend.feed import (
    AddressChange,
    FeedAlive,
    FeedLine,
    FeedTable,
    SnapshotLine,
    Update,
    read_line,
)
from tests.metasrv.holders.reader import mirror_of, state
from tests.procedures.harness.tables import table_info, table_route

T0, T1 = (
    feed_table(CatalogTable(table_info(number, f"t{number}", 1), table_route(number, ("dn-1",)), 1))
    for number in (1024, 1025)
)


def part(version: int, *tables: object, is_last: bool = True) -> SnapshotLine:
    return SnapshotLine(version=version, tables=tables, is_last=is_last)  # type: ignore[arg-type]


def hidden(table: FeedTable) -> FeedTable:
    return table.model_copy(update={"state": ElementState.WRITE_ONLY})


def heard(*lines: FeedLine) -> FeedReader:
    reading = FeedReader()
    for line in lines:
        reading = reading.heard(line)
    return reading


def test_given_parts_of_a_snapshot_then_nothing_is_known_before_the_last() -> None:
    first = heard(part(7, T0, is_last=False))
    last = first.heard(part(7, T1))

    assert first.mirror is None
    assert last.mirror is not None
    assert (last.mirror.version, sorted(last.mirror.tables)) == (7, [1024, 1025])


def test_given_a_stream_that_broke_in_a_snapshot_then_its_parts_are_forgotten() -> None:
    broken = heard(part(7, T0, is_last=False)).ended()

    again = broken.heard(part(8, T1))

    assert again.mirror is not None
    assert sorted(again.mirror.tables) == [1025]


def test_given_a_new_snapshot_then_what_it_does_not_name_is_gone() -> None:
    reading = heard(part(7, T0, T1), AddressChange(node="dn-1", address="http://a:1"), part(9, T1))

    assert reading.mirror is not None
    assert (dict(reading.mirror.names), dict(reading.mirror.addresses)) == (
        {("main", "public", "t1025"): 1025},
        {},
    )


def test_given_repeats_then_they_change_nothing() -> None:
    reading = heard(part(7, T0), Update(version=8, gone=(1024,)))

    assert reading.heard(Update(version=8, tables=(T1,))) == reading
    assert reading.heard(Update(version=7, tables=(T1,))) == reading


@pytest.mark.parametrize(
    "lines",
    [
        (Update(version=1),),
        (AddressChange(node="dn-1", address=None),),
        (part(7), Update(version=9)),
        (part(7, is_last=False), Update(version=8)),
        (part(7, is_last=False), part(8)),
        (part(7), part(6)),
    ],
    ids=["before any", "address before any", "gap", "in a snapshot", "torn", "back"],
)
@pytest.mark.case("online 14")
def test_given_a_line_that_cannot_follow_then_corrupt(lines: tuple[FeedLine, ...]) -> None:
    with pytest.raises(Corrupt):
        heard(*lines)


def test_given_addresses_then_they_come_and_go() -> None:
    reading = heard(part(7), AddressChange(node="dn-1", address="http://a:1"))
    assert reading.mirror is not None
    assert reading.mirror.address_of("dn-1") == "http://a:1"

    gone = reading.heard(AddressChange(node="dn-1", address=None))

    assert gone.mirror is not None
    assert (gone.mirror.address_of("dn-1"), gone.mirror.address_of(None)) == (None, None)


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"type":"other"}', b'{"type":"alive"}', b""])
def test_given_a_line_that_no_server_sends_then_it_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read_line(line)


def test_given_an_update_then_the_mirror_before_is_as_it_was() -> None:
    before = mirror_of(state().follower.catalog)

    after = before.updated(Update(version=2, tables=(T0,)))

    assert (before.tables.get(1024), after.tables[1024]) == (None, T0)
    assert isinstance(before, CatalogReplica)
    assert FeedAlive(version=1, leader=None, is_stale=False).leader is None


def test_given_updates_then_only_another_schema_or_a_loss_is_told_of_at_once() -> None:
    mirror = heard(part(7, T0)).mirror
    assert mirror is not None
    floor = T0.model_copy(update={"version": 2, "schema_floor": 1})
    column = T0.model_copy(update={"version": 2, "schema_version": 2})
    renamed = tuple(one.model_copy(update={"name": f"{one.name}_2"}) for one in T0.columns)
    edited = T0.model_copy(update={"version": 2, "columns": renamed})
    moved = T0.model_copy(update={"version": 2, "name": "other"})

    updates = (
        Update(version=8, tables=(T1,)),
        Update(version=8, tables=(floor,)),
        Update(version=8, gone=(1025,)),
        Update(version=8, tables=(column,)),
        Update(version=8, tables=(edited,)),
        Update(version=8, gone=(1024,)),
        Update(version=8, hidden=(1024,)),
        Update(version=8, tables=(hidden(T0),)),
        Update(version=8, hidden=(1025,)),
        Update(version=8, tables=(moved,)),
    )

    told = [mirror.is_waited_for(update) for update in updates]

    assert told == [False, False, False, True, True, True, True, True, False, True]


def test_given_a_table_that_is_hidden_and_back_then_it_is_found_by_its_name_again() -> None:
    mirror = heard(part(7, T0)).mirror
    assert mirror is not None

    one_by_one = mirror.updated(Update(version=8, tables=(hidden(T0),)))
    with_its_schema = mirror.updated(Update(version=8, hidden=(1024, 1025)))
    again = with_its_schema.updated(Update(version=9, tables=(hidden(T0),)))
    back = again.updated(Update(version=10, tables=(T0,)))
    gone = again.updated(Update(version=10, gone=(1024,)))

    assert one_by_one == with_its_schema
    assert (dict(again.names), dict(again.tables)) == ({}, {1024: hidden(T0)})
    assert back == replace(mirror, version=10)
    assert (dict(gone.names), dict(gone.tables)) == ({}, {})

"""Tables of a snapshot of the feed are decoded when they are asked for."""

import orjson
import pytest
from pydantic import ValidationError

from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.state.feed_tables import feed_table
from metasrv_base.feed import packed_feed
from metasrv_base.feed.catalog_replica import CatalogReplica, FeedReader
from metasrv_base.feed.packed_feed import ComingTables, PackedFeedTables
from metasrv_base.wire.frontend.feed import FeedTable, ParsedPart, SnapshotLine, Update, read_line
from tests.procedures.harness.tables import table_info, table_route

TABLES = [
    feed_table(CatalogTable(table_info(number, f"t{number}", 1), table_route(number, ("dn-1",)), 1))
    for number in range(1024, 1054)
]


def lines() -> list[bytes]:
    """The lines of a snapshot, ten tables in each."""
    parts = [TABLES[first : first + 10] for first in range(0, len(TABLES), 10)]
    return [
        SnapshotLine(version=7, tables=tuple(part), is_last=part is parts[-1])
        .model_dump_json()
        .encode()
        for part in parts
    ]


def mirror() -> CatalogReplica:
    reading = FeedReader()
    for line in lines():
        reading = reading.heard(read_line(line))
    assert reading.mirror is not None
    return reading.mirror


@pytest.fixture
def decodings(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The text of each table that is decoded."""
    texts: list[bytes] = []
    sound = packed_feed.decoded

    def counted(text: bytes) -> FeedTable:
        texts.append(text)
        return sound(text)

    monkeypatch.setattr(packed_feed, "decoded", counted)
    return texts


def test_given_a_snapshot_when_read_then_only_tables_that_are_asked_for_are_decoded(
    decodings: list[bytes],
) -> None:
    replica = mirror()

    assert (len(replica.tables), len(replica.names)) == (30, 30)
    assert decodings == []
    assert replica.find("main", "public", "t1030") == TABLES[6]
    assert replica.find("main", "public", "t1030") is replica.tables[1030]
    assert len(decodings) == 1


def test_given_a_snapshot_when_all_is_read_then_it_is_what_was_told() -> None:
    assert sorted(mirror().tables.values(), key=lambda table: table.id) == TABLES
    assert [mirror().tables[table.id] for table in TABLES] == TABLES


def test_given_updates_above_a_snapshot_then_only_what_they_touch_is_decoded(
    decodings: list[bytes],
) -> None:
    moved = TABLES[0].model_copy(update={"name": "moved", "schema_version": 2})
    update = Update(version=8, tables=(moved,), hidden=(1025,), gone=(1026,))

    before = mirror()
    after = before.updated(update)

    assert before.is_waited_for(update)
    assert after.find("main", "public", "moved") == moved
    assert (after.find("main", "public", "t1024"), after.tables.get(1026)) == (None, None)
    assert after.find("main", "public", "t1025") is None
    assert before.find("main", "public", "t1024") == TABLES[0]
    assert len(decodings) == 3


def test_given_bounds_when_tables_are_read_in_turn_then_few_stay_decoded(
    monkeypatch: pytest.MonkeyPatch, decodings: list[bytes]
) -> None:
    monkeypatch.setattr(packed_feed, "DECODED_BYTES_MAX", 1_500)
    monkeypatch.setattr(packed_feed, "INFLATED_BYTES_MAX", 0)
    replica = mirror()

    for _ in range(2):
        assert [replica.tables[table.id].name for table in TABLES] == [t.name for t in TABLES]

    assert len(decodings) == 2 * len(TABLES)


def test_given_an_empty_snapshot_then_it_has_no_table() -> None:
    reading = FeedReader().heard(ParsedPart(3, (), {}, is_last=True))

    assert reading.mirror is not None
    assert not reading.mirror.tables
    assert list(reading.mirror.tables.items()) == []
    with pytest.raises(KeyError):
        reading.mirror.tables[1024]


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"type":"snapshot",',
        b'{"type":"snapshot","version":7,"is_last":true}',
        b'{"type":"snapshot","version":7,"tables":{},"is_last":true}',
        b'{"type":"snapshot","version":"7","tables":[],"is_last":true}',
        b'{"type":"snapshot","version":7,"tables":[]}',
        b'{"type":"snapshot","version":7,"tables":[{"id":1}],"is_last":true}',
        b'{"type":"snapshot","version":7,"tables":[7],"is_last":true}',
    ],
)
def test_given_a_part_that_no_server_sends_then_it_is_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError, match=r"validation error|tables of a snapshot|JSON|unexpected"):
        read_line(wrong)


def test_given_a_table_that_no_server_sends_when_asked_for_then_it_is_refused() -> None:
    wrong = {**orjson.loads(TABLES[0].model_dump_json()), "columns": "none"}

    pack = PackedFeedTables(ComingTables().with_part([wrong]))

    with pytest.raises(ValidationError):
        pack.get(1024)

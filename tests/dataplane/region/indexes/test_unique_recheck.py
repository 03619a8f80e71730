"""A unique index is filled beside writers: every living row has its entry, or rivals are named."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.region.compaction import compaction
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import file_ingest
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.indexes import unique_recheck
from dataplane.region.place import RegionLimits
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.node.offenders import Duplicate, Offenders
from tests.dataplane.region.attempts import MARK
from tests.dataplane.region.entries import (
    INDEX,
    SCHEMA,
    Place,
    Value,
    new_region,
    version_in,
    write_mixed,
)
from tests.dataplane.region.entries import entries_of as index_of
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, cut_short
from tests.dataplane.region.rig import contents, order, place
from tests.dataplane.region.unique_entries import (
    FILLED,
    MADE,
    SOURCE,
    entry_key,
    made,
    marked,
    offenders_of,
    prepared_store,
)
from tests.dataplane.region.watched_budget import WatchedBudget


@dataclass
class Writers:
    """Rows with an index over their text: from the mark on as a frontend has it in write-only."""

    region: Region
    rows: dict[bytes, str | None] = field(default_factory=dict)
    statements: int = 0

    def run(self, deeds: list[tuple[bytes | str, str | None]], keeps_index: bool) -> None:
        for what, value in deeds:
            if isinstance(what, bytes):
                self._write(what, value, keeps_index)
            elif what == "flush":
                self.region.maintenance.flush()
                self.region.maintenance.compact()
            else:
                self.region = Region.open(self.region.place, order(1))

    def _write(self, key: bytes, value: str | None, keeps_index: bool) -> None:
        """The text `gone` deletes the row."""
        is_gone = value == "gone"
        values: dict[Place, Value] = {(ROWS, key): None if is_gone else (0, value)}
        if keeps_index and not self._keep(values, key, value, is_gone):
            return  # another row has it
        self.statements += 1
        write_mixed(self.region, f"s-{self.statements}", values)
        self.rows.pop(key, None)
        if not is_gone:
            self.rows[key] = value

    def _keep(
        self, values: dict[Place, Value], key: bytes, value: str | None, is_gone: bool
    ) -> bool:
        entries = index_of(self.region)
        old = entry_key(self.rows[key], key) if key in self.rows else None
        new = None if is_gone else entry_key(value, key)
        if old == new:
            return True  # no column of the index changes: nothing is said of the entry
        if new is not None and entries.get(new, key) != key:
            return False
        if old is not None and entries.get(old, key) == key:
            values[INDEX, old] = None
        if new is not None:
            values[INDEX, new] = key
        return True


KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.sampled_from(["x", "y", "gone", None])
DEEDS = st.lists(
    st.one_of(
        st.tuples(KEYS, VALUES),
        st.tuples(KEYS, VALUES),
        st.sampled_from([("flush", None), ("reopen", None)]),
    ),
    max_size=8,
)
Deeds = list[tuple[bytes | str, str | None]]


@pytest.mark.slow
@settings(max_examples=50)
@given(before=DEEDS, during=DEEDS, prepared=DEEDS, behind=DEEDS)
def test_given_writers_at_any_time_when_a_unique_index_is_ingested_then_it_is_that_of_the_rows(
    before: Deeds, during: Deeds, prepared: Deeds, behind: Deeds
) -> None:
    small = RegionLimits(memtable_bytes=1_500)
    writers = Writers(new_region(MemoryDisk(MemoryStore()), small))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "FAN_IN", 2)  # so that a short history merges
        patch.setattr(unique_recheck, "KEYS_AT_ONCE", 2)
        writers.run(before, keeps_index=False)
        writers.region.set_schema(SCHEMA, MARK)
        source = made(writers.region)
        writers.run(during, keeps_index=True)
        ready = writers.region.file_ingest.prepare(source)
        writers.run(prepared, keeps_index=True)
        by_value: dict[str, list[str]] = {}
        for key, value in sorted(writers.rows.items()):
            if value is not None:
                by_value.setdefault(value, []).append(key.hex())
        rivals = {value: keys for value, keys in by_value.items() if len(keys) > 1}

        if rivals:
            before_it = index_of(writers.region)
            with pytest.raises(Refused) as refused:
                writers.region.file_ingest.ingest(source, ready)
            found = offenders_of(refused.value)
            assert found.total == len(rivals)
            assert {one.values[0]: one.row_keys for one in found.duplicates} == rivals
            assert index_of(writers.region) == before_it, "nothing was taken"
            return
        assert writers.region.file_ingest.ingest(source, ready)
        assert index_of(writers.region) == {
            entry_key(value, key): key for key, value in writers.rows.items()
        }
        writers.region.set_schema(SCHEMA, close=[MARK])
        writers.run(behind, keeps_index=True)

    expected = {entry_key(value, key): key for key, value in writers.rows.items()}
    assert index_of(writers.region) == expected
    rows = {key: row[1] for key, row in contents(writers.region).items()}
    assert rows == writers.rows


@pytest.mark.case("online 40")
def test_given_two_equal_rows_when_one_goes_behind_the_mark_then_the_other_has_its_entry() -> None:
    region = marked({b"a": (1, "x")}, {b"b": (2, "x")})
    source = made(region)
    write_mixed(region, "s-9", {(ROWS, b"a"): None, (INDEX, entry_key("x", b"a")): None})

    assert region.file_ingest.ingest(source)

    assert index_of(region) == {entry_key("x", b"b"): b"b"}
    assert index_of(Region.open(region.place, order(1))) == index_of(region)
    with pytest.raises(MetaError):
        write_mixed(
            region,
            "s-10",
            {(INDEX, entry_key("x", b"c")): b"c"},
            {(INDEX, entry_key("x", b"c")): 0},
        )


@pytest.mark.case("online 37")
def test_given_equal_rows_when_ingested_then_both_are_named_and_nothing_is_taken() -> None:
    region = marked(
        {b"a": (1, "x"), b"b": (2, "x"), b"c": (3, "y"), b"d": (4, None), b"e": (5, None)}
    )
    source, before = made(region), region.manifest

    for _ in range(2):
        with pytest.raises(Refused) as refused:
            region.file_ingest.ingest(source)
        assert offenders_of(refused.value) == Offenders(
            index=INDEX, duplicates=[Duplicate(values=["x"], row_keys=["61", "62"])], total=1
        )

    assert region.manifest.files == before.files
    assert index_of(region) == {}


def test_given_a_row_that_takes_the_value_of_an_old_one_when_ingested_then_both_are_named() -> None:
    region = marked({b"a": (1, "x"), b"c": (3, "y")})
    source = made(region)
    write_mixed(region, "s-9", {(ROWS, b"b"): (2, "x"), (INDEX, entry_key("x", b"b")): b"b"})

    with pytest.raises(Refused) as refused:
        region.file_ingest.ingest(source)

    (only,) = offenders_of(refused.value).duplicates
    assert only.row_keys == ["61", "62"]


@pytest.mark.case("online 39")
def test_given_equal_rows_when_one_is_mended_before_the_ingest_then_there_is_no_fault() -> None:
    region = marked({b"a": (1, "x"), b"b": (2, "x")})
    source = made(region)
    values: dict[Place, Value] = {
        (ROWS, b"b"): (2, "z"),
        (INDEX, entry_key("x", b"b")): None,
        (INDEX, entry_key("z", b"b")): b"b",
    }
    write_mixed(region, "s-9", values)

    assert region.file_ingest.ingest(source)
    assert not region.file_ingest.ingest(source)

    assert index_of(region) == {entry_key("x", b"a"): b"a", entry_key("z", b"b"): b"b"}
    assert version_in(region, (INDEX, entry_key("x", b"a"))) > version_in(region, (ROWS, b"b"))


def test_given_more_rivals_than_an_answer_holds_when_ingested_then_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = marked({b"%04d" % number: (0, f"v{number % 100}") for number in range(1_000)})
    source = made(region)
    monkeypatch.setattr(unique_recheck, "OFFENDERS_BYTES_MAX", 2_000)

    with pytest.raises(Refused) as refused:
        region.file_ingest.ingest(source)

    found = offenders_of(refused.value)
    assert found.total == 100
    assert 0 < len(found.duplicates) < 100
    assert all(len(one.row_keys) == 8 for one in found.duplicates)


def test_given_an_ingest_that_was_done_when_its_files_are_merged_and_it_comes_again_then_done() -> (
    None
):
    region = marked({b"a": (1, "x")}, {b"b": (2, "y")})
    source = made(region)
    region.file_ingest.ingest(source)
    region.set_schema(SCHEMA, close=[MARK])
    for number in range(4):
        write_mixed(region, f"t-{number}", {(INDEX, b"\x01t"): b"t"})
        region.maintenance.flush()
    while region.maintenance.compact():
        pass
    region.maintenance.sweep()
    region.maintenance.collect()

    assert not region.file_ingest.ingest(source, region.file_ingest.prepare(source))


def test_given_more_keys_than_memory_may_have_when_ingested_then_all_are_settled_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_ingest, "PREPARED_BYTES_MAX", 1)
    store, _ = prepared_store()
    region = Region.open(place(MemoryDisk(store)), order(1))

    first = region.file_ingest.prepare(SOURCE)
    region.file_ingest.settle(SOURCE, first)
    second = region.file_ingest.prepare(SOURCE)

    assert [len(one.keys) for one in (first, second)] == [1, 1]
    assert not first.keys & second.keys
    assert region.file_ingest.ingest(SOURCE)
    assert index_of(region) == FILLED


def test_given_entries_of_a_job_when_looked_at_then_their_memory_is_reserved() -> None:
    store, _ = prepared_store()
    budget = WatchedBudget()
    region = Region.open(replace(place(MemoryDisk(store)), budget=budget), order(1))

    ready = region.file_ingest.prepare(SOURCE)
    looked_at = list(budget.merged)
    region.file_ingest.settle(SOURCE, ready)

    (made_bytes,) = (file.bytes for file in SOURCE.files)
    assert len(looked_at) == 1
    assert len(budget.merged) == 2
    assert min(budget.merged) >= file_ingest.PREPARED_BYTES_MAX + made_bytes
    assert budget.work_bytes == 0


def ingest_once(life: Life) -> None:
    Region.open(place(life.disk), order(1)).file_ingest.ingest(SOURCE)


@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
@pytest.mark.slow
def test_given_power_loss_anywhere_in_a_unique_ingest_when_it_is_ordered_again_then_it_is_whole(
    device: str,
) -> None:
    seen = set()

    for _, store in cut_short(MADE, device, ingest_once):
        again = Region.open(place(MemoryDisk(store)), order(1))
        found = index_of(again)
        assert found.items() <= FILLED.items(), "what was put again is true, whatever came of it"
        assert (SOURCE.name in again.manifest.adopted) == (found == FILLED)
        assert again.file_ingest.ingest(SOURCE) == (found != FILLED)
        assert index_of(again) == FILLED
        seen.add(len(found))

    assert seen >= {0, 2, 3}

"""Changes of schema and marks travel in the leader's log: each copy makes them in its order."""

from pathlib import Path

import pytest

from dataplane.log.records import RecordType
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.following.append_body import AppendPart, decode_append, encode_append
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leading import lead, lead_alone
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_change import LoggedChange, decode_change
from dataplane.region.place import OpenOrder
from metasrv_base.errors import Corrupt, Unavailable
from tests.dataplane.region.following.change_lives import TINY, promoted
from tests.dataplane.region.following.changing import (
    C3,
    ITEMS,
    OPEN,
    WIDER,
    Moment,
    change,
    counted,
    moment,
    moments,
    state_of,
    state_on,
    write_at,
)
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, C, order, place

GOLDEN = Path(__file__).parents[3] / "golden" / "region"


def led() -> tuple[Region, list[Moment]]:
    region = leader(MemoryDisk(MemoryStore()))
    return region, moments(region)


# -- one copy


def test_given_changes_among_rows_when_streamed_then_a_copy_is_at_each_position_as_its_leader() -> (
    None
):
    region, as_led = led()
    for end in range(1, ITEMS + 1):
        copy = copy_at(MemoryDisk(MemoryStore()))
        for common in range(end + 1):
            assert copy.take(sent(region, 0, common, upto=end)) == end
            assert state_on(copy.place.disk, B) == as_led[common].state, "and not before"

        assert promoted(copy, 2) == as_led[end]


@pytest.mark.parametrize("end", range(1, ITEMS + 1))
def test_given_changes_that_are_not_common_when_a_copy_is_promoted_then_it_makes_them(
    end: int,
) -> None:
    region, as_led = led()
    copy = copy_at(MemoryDisk(MemoryStore()))
    copy.take(sent(region, 0, 1, upto=end))
    assert state_on(copy.place.disk, B) == as_led[0].state

    opening = lead(place(copy.place.disk, B), order(2))

    assert state_of(opening.region.manifest) == as_led[0].state, "it may be cut"
    assert counted(opening) == as_led[end]
    again = lead(place(copy.place.disk, B), order(3))
    assert counted(again) == as_led[end]


def test_given_a_change_that_the_next_leader_does_not_have_when_it_leads_then_it_is_cut() -> None:
    region, _ = led()
    second, third = (copy_at(MemoryDisk(MemoryStore()), root) for root in (B, C))
    second.take(sent(region, 0, 2, upto=4))
    third.take(sent(region, 0, 2, upto=2))
    third.close()
    opening = lead(place(third.place.disk, C), order(2))
    opening.count()
    other = RegionSchema(9, 0, (*SPEC.columns, C3.model_copy(update={"id": 4})))
    change(opening.region, RegionChange(other, "another"))
    write_at(opening.region, 50, 9)

    second.take(sent(opening.region, 2, 4))

    assert state_on(second.place.disk, B) == state_of(opening.region.manifest)
    assert promoted(second, 3) == moment(opening.region)


def test_given_an_ordered_change_then_it_has_no_effect_before_it_is_settled() -> None:
    region = leader(MemoryDisk(MemoryStore()))
    write_at(region, 1, 1)
    before = state_of(region.manifest)

    ordered = region.changes.order(OPEN)

    assert state_of(region.manifest) == before
    write_at_version = region.stats().version
    assert ordered.version == write_at_version
    with pytest.raises(AssertionError):
        region.changes.order(OPEN)
    assert not region.maintenance.flush(), "its log has a record that is not in memory"
    assert ordered.record is not None
    region.changes.settle(ordered.record)
    assert (region.schema.floor, region.manifest.floor_version) == (1, write_at_version)
    assert region.changes.order(OPEN).logged is None, "it knows all of it"
    assert region.maintenance.flush()


def test_given_a_copy_that_flushes_between_then_what_its_files_have_is_not_made_again() -> None:
    region, as_led = led()
    copy = copy_at(MemoryDisk(MemoryStore()), limits=TINY)
    for common in range(ITEMS + 1):
        copy.take(sent(region, 0, common))
        if copy.maintenance is not None:
            copy.maintenance.flush()
            copy.maintenance.compact()

    assert promoted(copy, 2) == as_led[ITEMS]


def test_given_a_learner_of_a_newer_schema_then_it_keeps_it_and_says_when_its_floor_took_hold() -> (
    None
):
    region, as_led = led()
    columns = (*SPEC.columns, C3)
    spec = SPEC.model_copy(update={"columns": columns, "schema_version": 2, "schema_floor": 2})
    copy = CopyRegion.create(place(MemoryDisk(MemoryStore()), B), spec, 1)

    copy.take(sent(region, 0, 5, upto=5))

    assert state_on(copy.place.disk, B).schema.floor == 2
    copy.close()
    opening = lead(place(copy.place.disk, B), order(2))
    assert counted(opening).rows == as_led[5].rows
    told = RegionChange(RegionSchema(2, 2, columns))
    assert change(opening.region, told) == as_led[5].version
    assert change(opening.region, told) == as_led[5].version


def test_given_rows_of_columns_that_a_copy_was_not_told_of_then_it_takes_none_of_them() -> None:
    region = leader(MemoryDisk(MemoryStore()))
    region.set_schema(WIDER)  # as a region without copies: not in the log
    write_at(region, 1, 2, c3=1)
    copy = copy_at(MemoryDisk(MemoryStore()))
    assert copy.take(sent(region, 0, 0)) == 1

    with pytest.raises(Unavailable, match="lacks a change"):
        copy.take(sent(region, 1, 1))

    ordered = region.changes.order(RegionChange(RegionSchema()), anew=True)
    assert ordered.logged is not None, "it tells all that it has"


def test_given_a_region_that_is_opened_alone_when_its_log_has_a_change_then_it_is_made() -> None:
    region, as_led = led()
    copy = copy_at(MemoryDisk(MemoryStore()))
    copy.take(sent(region, 0, 0, upto=7))
    copy.close()

    alone = lead_alone(place(copy.place.disk, C), OpenOrder(REGION_ID, 2, (B,)))

    assert alone.declares
    assert moment(alone.region) == as_led[7]
    told = RegionSchema(5, 4, (*SPEC.columns, C3))
    newer = Region.open(
        place(copy.place.disk, A),
        OpenOrder(REGION_ID, 3, (B, C), told.columns, told.version, told.floor),
    )
    assert newer.schema.floor == 4
    assert newer.manifest.floor_version == as_led[7].version


def test_given_an_ordered_change_when_its_manifest_fails_then_the_region_serves_no_more() -> None:
    full: list[str] = []

    def refuse(operation: str, path: str) -> None:
        if full:
            raise Unavailable("storage-full", path=path, operation=operation)

    region = leader(MemoryDisk(MemoryStore(), refuse))
    ordered = region.changes.order(OPEN)
    assert ordered.record is not None
    full.append("from now on")

    with pytest.raises(Unavailable, match="storage-full"):
        region.changes.settle(ordered.record)

    assert region.stopped is not None


# -- the record


def test_given_a_change_when_encoded_then_it_is_the_golden_bytes() -> None:
    region, _ = led()
    logged = LoggedChange.of(region.manifest.model_copy(update={"version": 7}), 9)
    golden = logged.model_copy(update={"floor_version": 5})

    assert golden.encode() == (GOLDEN / "change.json").read_bytes().rstrip(b"\n")
    assert decode_change(golden.encode(), "here") == golden


@pytest.mark.parametrize("payload", [b"", b"{}", b"\xff", b'{"format":2}'])
def test_given_a_payload_that_is_no_change_when_decoded_then_corrupt(payload: bytes) -> None:
    with pytest.raises(Corrupt, match="cannot be decoded"):
        decode_change(payload, "here")


def test_given_changes_when_sent_then_the_body_has_them_with_their_types() -> None:
    region, _ = led()
    part = AppendPart(REGION_ID, B, sent(region, 0, 3))

    (decoded,) = decode_append(encode_append([part]))

    types = [record.type for record in decoded.records.groups]
    assert types == [
        RecordType.CHANGE if item in (3, 7) else RecordType.GROUP for item in range(1, ITEMS + 1)
    ]
    assert [(r.position, bytes(r.payload)) for r in decoded.records.groups] == [
        (r.position, bytes(r.payload)) for r in part.records.groups
    ]

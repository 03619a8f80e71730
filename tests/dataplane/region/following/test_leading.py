"""A copy that is promoted: its log is readable, and in files, once every copy has all of it."""

import pytest

from dataplane.region.copies.leader_view import CopyName, CopySet, LeaderView
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.append_body import AppendPart, decode_append, encode_append
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leader_stream import LeaderStream
from dataplane.region.following.leading import LedOpening, lead, lead_alone, lead_new
from dataplane.region.manifests.manifest import read_current_manifest
from dataplane.region.place import OpenOrder, RegionLimits
from metasrv_base.errors import Conflict, Unavailable
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    A,
    B,
    C,
    Contents,
    batch,
    contents,
    header,
    order,
    place,
    write,
)

SECOND, THIRD = CopyName("dn-b", B), CopyName("dn-c", C)
TINY = RegionLimits(memtable_bytes=1_000)


def rows(numbers: range) -> Contents:
    return {f"k{number}".encode(): (number, "x") for number in numbers}


def two_copies(count: int, lags: int, common: int) -> tuple[CopyRegion, CopyRegion]:
    """B has *count* records, C lacks the last *lags* of them; both know *common* as common. The
    leader's disk is gone."""
    region = leader(MemoryDisk(MemoryStore()))
    for number in range(count):
        write(region, f"s{number}", rows(range(number, number + 1)))
    copies = []
    for root, end in ((B, count), (C, count - lags)):
        copy = copy_at(MemoryDisk(MemoryStore()), root)
        assert copy.take(sent(region, 0, common, upto=end)) == end
        copies.append(copy)
    return copies[0], copies[1]


def promoted(copy: CopyRegion, epoch: int, limits: RegionLimits | None = None) -> LedOpening:
    copy.close()
    return lead(place(copy.place.disk, copy.place.root, limits=limits), order(epoch))


def test_given_a_promoted_copy_then_what_may_be_cut_is_not_readable_and_in_no_file() -> None:
    second, _ = two_copies(10, lags=3, common=4)
    opening = promoted(second, 2, TINY)

    assert (opening.log.end, opening.log.common) == (10, 0), "files have nothing yet"
    assert contents(opening.region) == {}
    assert not opening.region.maintenance.flush()
    assert opening.region.manifest.files == ()
    with pytest.raises(AssertionError):
        opening.region.writer.order([(header("s", epoch=2), batch(rows(range(1))))])

    opening.count()
    opening.count()

    assert contents(opening.region) == rows(range(10))
    assert opening.region.maintenance.flush()
    assert write(opening.region, "s3", rows(range(3, 4))).repeated, "statements are remembered"
    assert contents(opening.region) == rows(range(10))


def test_given_a_promoted_copy_that_dies_before_others_have_its_log_then_it_is_cut() -> None:
    second, third = two_copies(10, lags=3, common=4)
    promoted(second, 2, TINY).close()
    led = promoted(third, 3)
    led.count()
    write(led.region, "t", rows(range(90, 91)))
    again = CopyRegion(place(second.place.disk, B), REGION_ID)

    assert again.take(sent(led.region, 7, common=8)) == 8

    assert again.durable == (3, 8)
    assert contents(led.region) == {**rows(range(7)), **rows(range(90, 91))}
    opening = promoted(again, 4)
    opening.count()
    assert contents(opening.region) == contents(led.region)


def test_given_a_promoted_leader_when_the_others_follow_then_it_may_be_read() -> None:
    second, third = two_copies(10, lags=3, common=4)
    opening = promoted(second, 2)
    members = CopySet(2, 2, frozenset({SECOND, THIRD}))
    view = LeaderView.open(SECOND, members, 2, opening.log, now_ms=0)
    stream = LeaderStream(opening.region, view)
    while not view.may_read:
        (part,) = decode_append(encode_append([AppendPart(REGION_ID, C, stream.request(THIRD))]))
        view.acknowledged(THIRD, 2, third.take(part.records), now_ms=0)

    opening.count()

    assert third.durable == (1, 10)
    assert contents(opening.region) == rows(range(10))


def test_given_a_leader_that_has_started_again_then_it_needs_a_new_epoch() -> None:
    second, _ = two_copies(3, lags=0, common=3)
    promoted(second, 2).close()

    with pytest.raises(Unavailable, match="new epoch"):
        promoted(second, 2)
    with pytest.raises(Conflict, match="stale-epoch"):
        promoted(second, 1)

    opening = promoted(second, 3)
    opening.count()
    assert contents(opening.region) == rows(range(3))


def test_given_a_leader_that_is_alone_in_its_set_when_it_borrows_then_all_counts_at_once() -> None:
    disk = MemoryDisk(MemoryStore())
    write(leader(disk), "s", rows(range(3)))

    opening = lead_alone(place(disk, B), order(2, A))
    opening.count()

    assert contents(opening.region) == rows(range(3))
    assert opening.log.common == opening.log.end == 1
    opening.close()
    with pytest.raises(Unavailable, match="new epoch"):
        lead_alone(place(disk, B), order(2, A))


def test_given_a_new_region_when_made_again_then_only_while_it_has_no_row() -> None:
    disk = MemoryDisk(MemoryStore())
    first = lead_new(place(disk), SPEC, 1)
    first.close()
    opening = lead_new(place(disk), SPEC, 1)
    opening.count()
    write(opening.region, "s", rows(range(1)))
    opening.close()

    with pytest.raises(Unavailable, match="new epoch"):
        lead_new(place(disk), SPEC, 1)


def test_given_an_order_with_a_newer_schema_when_promoted_then_it_is_not_told_by_a_manifest() -> (
    None
):
    second, _ = two_copies(3, lags=0, common=3)
    second.close()
    newer = OpenOrder(REGION_ID, 2, schema_version=SPEC.schema_version + 1)

    opening = lead(place(second.place.disk, B), newer)

    assert opening.schema.version == SPEC.schema_version + 1
    assert opening.declares
    manifest = read_current_manifest(second.place.disk, B, REGION_ID)
    assert manifest is not None
    assert (manifest.epoch, manifest.schema_version) == (2, SPEC.schema_version)

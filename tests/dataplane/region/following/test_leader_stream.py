"""A leader and its copies, node by node: no acknowledged row is lost with the leader's disk."""

from random import Random

import pytest

from dataplane.region.copies.leader_view import (
    CopyName,
    CopySet,
    LeaderView,
    OwnLog,
    RecordState,
)
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.engine.writer import OrderedGroup
from dataplane.region.following import leader_stream
from dataplane.region.following.append_body import AppendPart, decode_append, encode_append
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.following.leader_stream import LeaderStream
from metasrv_base.errors import Unknown
from tests.dataplane.region.following.stream import copy_at, leader
from tests.dataplane.region.rig import (
    REGION_ID,
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

LEADER, SECOND, THIRD = CopyName("dn-a", A), CopyName("dn-b", B), CopyName("dn-c", C)


class Cluster:
    """A leader with its own disk, and copies with theirs; every request travels as bytes."""

    def __init__(self, *copies: CopyName, learners: tuple[CopyName, ...] = ()) -> None:
        self.region = leader(MemoryDisk(MemoryStore()))
        members = CopySet(1, 1, frozenset({LEADER, *copies}), frozenset(learners))
        view = LeaderView.open(LEADER, members, 1, OwnLog(0, 0), now_ms=0)
        self.stream = LeaderStream(self.region, view)
        self.copies = {
            name: copy_at(MemoryDisk(MemoryStore()), name.root) for name in (*copies, *learners)
        }
        self.acknowledged: Contents = {}
        self.waiting: tuple[OrderedGroup, bytes, int] | None = None

    def order(self, number: int) -> None:
        key = f"k{number}".encode()
        ordered = self.region.writer.order([(header(f"s-{number}"), batch({key: (number, "x")}))])
        assert ordered.logged is not None
        self.stream.appended(ordered.logged, now_ms=0)
        self.waiting = ordered, key, number

    def send(self, name: CopyName) -> None:
        """One request and its answer."""
        body = encode_append([AppendPart(REGION_ID, name.root, self.stream.request(name))])
        (part,) = decode_append(body)
        durable = self.copies[name].take(part.records)
        self.stream.view.acknowledged(name, part.records.epoch, durable, now_ms=0)

    def settle(self) -> bool:
        """False: a copy lacks the group."""
        assert self.waiting is not None
        ordered, key, number = self.waiting
        if self.stream.view.judge(ordered.position.sequence) is RecordState.WAITS:
            return False
        (answer,) = self.region.writer.settle(ordered)
        assert isinstance(answer, Applied)
        self.acknowledged[key] = number, "x"
        self.waiting = None
        return True


def promoted(copy: CopyRegion, epoch: int = 2) -> Region:
    copy.close()
    return Region.open(place(copy.place.disk, copy.place.root), order(epoch))


def test_given_a_row_that_a_copy_lacks_then_it_is_neither_readable_nor_acknowledged() -> None:
    cluster = Cluster(SECOND, THIRD)
    cluster.order(1)
    for name in (SECOND, SECOND, SECOND):
        cluster.send(name)

    assert not cluster.settle()
    assert contents(cluster.region) == {}
    assert not cluster.region.maintenance.flush(), "and it is in no file"
    cluster.send(THIRD)
    cluster.send(THIRD)

    assert cluster.settle()
    assert contents(cluster.region) == {b"k1": (1, "x")}
    assert cluster.region.maintenance.flush()


def test_given_a_group_that_waits_when_another_is_ordered_then_it_is_refused() -> None:
    cluster = Cluster(SECOND)
    cluster.order(1)

    with pytest.raises(AssertionError):
        cluster.order(2)


def test_given_fewer_copies_than_the_minimum_when_settled_then_unknown_and_readable() -> None:
    cluster = Cluster(SECOND)
    cluster.order(1)
    cluster.send(SECOND)
    cluster.send(SECOND)
    assert cluster.waiting is not None

    (answer,) = cluster.region.writer.settle(cluster.waiting[0], Unknown(reason="too few"))

    assert isinstance(answer, Unknown)
    assert contents(cluster.region) == {b"k1": (1, "x")}
    assert write(cluster.region, "s-1", {b"k1": (1, "x")}).repeated


def lived(seed: int, *, flushes: bool) -> tuple[Cluster, Random]:
    """Requests are lost, sent twice, and cut short by restarts of copies."""
    random, cluster = Random(seed), Cluster(SECOND, THIRD)
    for number in range(25):
        cluster.order(number)
        for _ in range(60):
            name = random.choice([SECOND, THIRD])
            cluster.send(name)
            if random.random() < 0.05:
                disk = cluster.copies[name].place.disk
                cluster.copies[name] = CopyRegion(place(disk, name.root), REGION_ID)
            if cluster.settle():
                break
            if number == 24 and random.random() < 0.3:
                return cluster, random  # killed while a group is on its way
        upkeep = [cluster.region.maintenance]
        upkeep += [each for copy in cluster.copies.values() if (each := copy.maintenance)]
        for maintenance in upkeep:
            if flushes and random.random() < 0.2:
                maintenance.flush()
    return cluster, random


@pytest.mark.slow
@pytest.mark.parametrize("flushes", [False, True])
def test_given_a_leader_that_dies_with_its_disk_when_a_copy_is_promoted_then_no_row_is_lost(
    flushes: bool,
) -> None:
    for seed in range(12):
        cluster, random = lived(seed, flushes=flushes)
        assert len(cluster.acknowledged) >= 24
        name = random.choice([SECOND, THIRD])

        rows = contents(promoted(cluster.copies[name]))

        assert cluster.acknowledged.items() <= rows.items(), seed
        assert len(rows) <= 25


def test_given_an_acknowledged_statement_when_sent_to_the_next_leader_then_it_is_known() -> None:
    cluster, _ = lived(1, flushes=True)

    region = promoted(cluster.copies[SECOND])

    for key, row in cluster.acknowledged.items():
        assert write(region, f"s-{row[0]}", {key: row}).repeated


def test_given_a_learner_that_begins_late_then_it_is_brought_up_from_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leader_stream, "RECENT_BYTES_MAX", 1)
    monkeypatch.setattr(leader_stream, "REQUEST_BYTES_MAX", 1_500)
    cluster = Cluster(learners=(THIRD,))
    for number in range(10):
        cluster.order(number)
        assert cluster.settle(), "learners do not count"
    assert cluster.stream.view.joins_next(serves=True) is None

    requests = 0
    while cluster.stream.view.joins_next(serves=True) is None:
        cluster.send(THIRD)
        requests += 1

    assert 3 < requests < 12, "a bound for each request"
    assert contents(promoted(cluster.copies[THIRD])) == cluster.acknowledged


def test_given_a_log_that_was_flushed_when_a_learner_is_far_behind_then_it_is_sent_no_records() -> (
    None
):
    cluster = Cluster(learners=(THIRD,))
    for number in range(3):
        cluster.order(number)
        cluster.settle()
    cluster.stream.view.acknowledged(THIRD, 1, 0, now_ms=0)
    cluster.stream._recent.clear()
    assert len(cluster.stream.request(THIRD).groups) == 3

    cluster.region.maintenance.flush()

    request = cluster.stream.request(THIRD)
    assert request.groups == ()
    assert request.history.base.sequence == 3, "so the copy knows that it needs files"

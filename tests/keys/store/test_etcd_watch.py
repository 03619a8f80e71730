"""The assembling of revisions from what a stream carries, fragment by fragment."""

import pytest
from aetcd import rpc

from keys.store.etcd_watch import Assembler, WatchedRange
from keys.store.kv import Event, Watched
from metasrv_base.errors import Conflict, Refused, Unavailable

PREFIX = b"/p/"


def assembler(start_revision: int = 5) -> Assembler:
    return Assembler(WatchedRange(PREFIX, b"/p0", PREFIX), start_revision)


def put(key: bytes, revision: int) -> rpc.Event:
    return rpc.Event(kv=rpc.KeyValue(key=PREFIX + key, value=b"v", mod_revision=revision))


def answer(*events: rpc.Event, fragment: bool = False, **more: object) -> rpc.WatchResponse:
    return rpc.WatchResponse(events=events, fragment=fragment, **more)


def test_given_a_revision_in_two_fragments_when_fed_then_it_comes_whole() -> None:
    under_test = assembler()

    first = under_test.feed(answer(put(b"a", 5), put(b"a", 6), fragment=True))
    second = under_test.feed(answer(put(b"b", 6)))

    assert first == []
    assert second == [
        Watched(5, (Event(b"a", b"v", 5),)),
        Watched(6, (Event(b"a", b"v", 6), Event(b"b", b"v", 6))),
    ]
    assert under_test.next_revision == 7


def test_given_events_that_were_delivered_when_they_come_again_then_they_are_dropped() -> None:
    under_test = assembler()
    under_test.feed(answer(put(b"a", 6)))

    assert under_test.feed(answer(put(b"a", 6), put(b"b", 7))) == [
        Watched(7, (Event(b"b", b"v", 7),))
    ]


def test_given_a_deletion_when_fed_then_its_value_is_none() -> None:
    gone = rpc.Event(type="DELETE", kv=rpc.KeyValue(key=PREFIX + b"a", mod_revision=9))

    assert assembler().feed(answer(gone)) == [Watched(9, (Event(b"a", None, 9),))]


def test_given_progress_when_fed_then_only_news_is_told() -> None:
    under_test = assembler()

    assert under_test.feed(answer(header=rpc.ResponseHeader(revision=8))) == [Watched(8)]
    assert under_test.feed(answer(header=rpc.ResponseHeader(revision=8))) == []
    assert under_test.feed(answer(put(b"a", 8))) == []


def test_given_a_stream_that_opens_when_fed_then_its_revision_is_no_progress() -> None:
    opened = answer(created=True, header=rpc.ResponseHeader(revision=100))

    assert assembler().feed(opened) == []


def test_given_a_compaction_when_fed_then_history_has_expired() -> None:
    with pytest.raises(Conflict) as expired:
        assembler().feed(answer(canceled=True, compact_revision=50))

    assert expired.value.facts == {"asked": 5, "oldest": 50}


def test_given_a_cancelled_watch_when_fed_then_it_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        assembler().feed(answer(canceled=True, cancel_reason="no leader"))


def test_given_a_watch_cancelled_for_want_of_permission_when_fed_then_it_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        assembler().feed(answer(canceled=True, cancel_reason="etcdserver: permission denied"))

    assert refused.value.code == "unauthenticated"

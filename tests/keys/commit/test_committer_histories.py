"""Group commit under lost, late and reordered answers: everybody is told the truth.

The cases are Hypothesis', the same each time. What is judged is the store's own history, and late
copies arrive before it is read: under whichever leader leads by then.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from keys.commit import batch, committer, packing
from keys.commit.batch import Batch, LogHead, PendingTxn, StampedTxn
from keys.commit.packing import Footprint, pack
from keys.commit.txn import Txn
from keys.store.etcd import EtcdKv
from keys.store.kv import Compare, Kv
from keys.store.memory import MemoryKv
from metasrv_base.errors import MetaError
from tests.fakes.clock import FakeClock
from tests.keys.commit.clients import Attempt, Case, Fate, Weather, World
from tests.keys.commit.truth import doubts, history, judged

ATTEMPTS = st.one_of(
    st.builds(
        Attempt, st.sampled_from(["count", "audit", "watch", "forget"]), pause=st.integers(0, 2)
    ),
    st.builds(
        Attempt,
        st.sampled_from(["create", "drop"]),
        st.integers(0, 1),
        st.sampled_from([None, 0]),
        st.integers(0, 2),
    ),
)
WEATHER = st.builds(Weather, st.sampled_from(Fate), st.integers(1, 8))


def cases_of(attempts: st.SearchStrategy[Attempt]) -> st.SearchStrategy[Case]:
    clients = st.lists(st.lists(attempts, min_size=1, max_size=6), min_size=2, max_size=8)
    return st.tuples(clients, st.lists(WEATHER, max_size=8))


CASES = cases_of(ATTEMPTS)
FORGETTING = cases_of(st.builds(Attempt, st.just("forget"), pause=st.integers(0, 2)))
WATCHING = cases_of(
    st.one_of(
        st.builds(Attempt, st.just("watch"), pause=st.integers(0, 2)),
        st.builds(
            Attempt, st.sampled_from(["create", "drop"]), st.just(0), st.sampled_from([None, 0])
        ),
    )
)
RUNS = 200
RUNS_ON_ETCD = 25
HUNTED = 500  # runs within which each planted bug must be found


@dataclass
class Judged:
    wrong: list[str]
    doubts: dict[str, int]


async def lived(kv: Kv, case: Case, *, blind: bool = False) -> Judged:
    world = World(kv, case, blind)
    await world.run()
    log = await history(kv, world.start_revision + 1)
    return Judged(judged(world, log), doubts(world, log))


def in_memory(case: Case, *, blind: bool = False) -> Judged:
    return asyncio.run(lived(MemoryKv(FakeClock()), case, blind=blind))


@pytest.mark.slow
def test_given_any_weather_when_many_commit_then_everybody_is_told_the_truth() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=RUNS, suppress_health_check=list(HealthCheck))
    @given(CASES)
    def holds(case: Case) -> None:
        found = in_memory(case)
        seen.update(found.doubts)
        assert found.wrong == []

    holds()

    rare = {fate.value for fate in Fate} | {
        "told unknown, and done",
        "told unknown, and not done",
        "told not done",
        "several in one transaction",
        "several terms",
    }
    assert {name for name in rare if not seen[name]} == set(), dict(seen)


@pytest.mark.etcd
def test_given_a_real_etcd_and_any_weather_then_everybody_is_told_the_truth(
    etcd: str, etcd_prefix: bytes
) -> None:
    seen: Counter[str] = Counter()

    async def on_etcd(case: Case) -> Judged:
        kv = await EtcdKv.connect([etcd], b"%s%d/" % (etcd_prefix, seen["runs"]))
        try:
            return await lived(kv, case)
        finally:
            await kv.close()

    @settings(max_examples=RUNS_ON_ETCD, suppress_health_check=list(HealthCheck))
    @given(CASES)
    def holds(case: Case) -> None:
        seen["runs"] += 1
        found = asyncio.run(on_etcd(case))
        seen.update(found.doubts)
        assert found.wrong == []

    holds()

    assert seen["several in one transaction"]


# ---- fairness, of the pure choice


KEYS = st.sampled_from([b"__sequence/%d" % number for number in range(6)])
TXNS = st.builds(
    lambda mine, reads, writes: Txn(
        {**dict.fromkeys(reads, 3), mine: 3}, writes=dict.fromkeys({mine, *writes}, b"1")
    ),
    KEYS,
    st.sets(KEYS, max_size=2),
    st.sets(KEYS, max_size=1),
)


@settings(max_examples=200)
@given(st.lists(TXNS, min_size=1, max_size=24), st.integers(1, 8))
@pytest.mark.slow
def test_given_any_who_wait_then_each_goes_in_time_and_nobody_overtakes_whom_it_clashes_with(
    txns: list[Txn], members_max: int
) -> None:
    line = LogHead(Compare(b"__election/leader", 5), 3, 9, 1_000, 40)
    waiting, went = list(enumerate(txns)), []

    while waiting:
        members = [PendingTxn(txn, None) for _, txn in waiting]
        taken = pack(line, members, 1, members_max=members_max).taken
        went.append([waiting[place][0] for place in taken])
        waiting = [one for place, one in enumerate(waiting) if place not in taken]

    batch_of = {number: place for place, batch in enumerate(went) for number in batch}
    assert all(batch_of[number] <= number for number in range(len(txns)))
    for later, txn in enumerate(txns):
        for earlier, other in enumerate(txns[:later]):
            if txn.writes.keys() & other.expect.keys() or other.writes.keys() & txn.expect.keys():
                assert batch_of[earlier] < batch_of[later]


# ---- planted bugs: a harness that cannot fail proves nothing


CLASHES, SEAL, EFFECT, SHARE = Footprint.clashes, batch.seal, batch._effect, batch.share


def blind_to_reads(met: Footprint, txn: Txn) -> bool:
    return not met.written.isdisjoint(txn.writes)


def blind_to_ranges(met: Footprint, txn: Txn) -> bool:
    return CLASHES(
        Footprint(met.reads, set(), met.written), replace(txn, empty=frozenset(), unchanged={})
    )


def never_ours(*_: object) -> None:
    """Whatever stands in the store, it is not what these bytes wrote."""


def absent_is_not_done(*facts: Any) -> Any:
    """A witness that is gone as it should be is taken for a sign that nothing was done."""
    return EFFECT(*facts) or None


def without_fence(before: LogHead, after: LogHead, shares: Sequence[StampedTxn]) -> Batch:
    sealed = SEAL(before, after, shares)
    request = sealed.request
    return replace(
        sealed,
        request=replace(request, compares=request.compares[1:], on_refusal=request.on_refusal[1:]),
    )


def unchanged_not_compared(
    head: LogHead, member: PendingTxn, now_ms: int
) -> tuple[StampedTxn, LogHead]:
    return SHARE(head, replace(member, txn=replace(member.txn, unchanged={})), now_ms)


PLANTED: dict[str, tuple[Any, str, object]] = {
    "two members that read each other's writes": (Footprint, "clashes", blind_to_reads),
    "ranges are not looked at": (Footprint, "clashes", blind_to_ranges),
    "a range is not compared as unchanged": (packing, "share", unchanged_not_compared),
    "unknown treated as failed": (None, "", None),
    "a refusal after a doubt is not done": (batch, "_effect", never_ours),
    "absence read back is not done": (batch, "_effect", absent_is_not_done),
    "no fence": (committer, "seal", without_fence),
}
HUNTED_IN = {
    "absence read back is not done": FORGETTING,
    "a range is not compared as unchanged": WATCHING,
}


@pytest.mark.crash
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_cases_are_drawn_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    where, name, planted = PLANTED[bug]
    if where is not None:
        monkeypatch.setattr(where, name, planted)
    runs, found = 0, ""

    def is_wrong(case: Case) -> bool:
        nonlocal runs, found
        runs += 1
        found = what_is_wrong(case, blind=where is None)
        return bool(found)

    drawn = settings(max_examples=HUNTED, phases=[Phase.generate], database=None)
    find(HUNTED_IN.get(bug, CASES), is_wrong, settings=drawn, random=Random(1))

    with capsys.disabled():
        print(f"\n{bug}: run {runs}: {found[:160]}", end="")


def what_is_wrong(case: Case, *, blind: bool) -> str:
    try:
        return "; ".join(in_memory(case, blind=blind).wrong)
    except (AssertionError, MetaError, ExceptionGroup) as error:
        return f"the code itself has noticed: {error!r}"

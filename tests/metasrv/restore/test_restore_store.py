"""A restore that is killed, loses answers or meets another one, at each of its transactions."""

from typing import NoReturn

import pytest

from keys.commit.bootstrap import bootstrap_request
from keys.model.cluster import ClusterKey, LeaderKey, RestoreMark, RestoreMarkKey
from keys.store.kv import Compare, Put, Request
from metasrv.restore import restore_chunks
from metasrv.restore.backup_facts import read_backup_facts
from metasrv.restore.restore import RestoredCluster, RestoreDeps, restore
from metasrv.restore.restore_store import RestoreStore
from metasrv_base.errors import Conflict, MetaError
from tests.keys.store.faulty import Call, Fault, FaultyKv, Script, soundly
from tests.metasrv.check.cluster import DEADLINE_MS
from tests.metasrv.restore.backups import Backup, Target, pieces

LOSSES = (Fault.NEVER_SENT, Fault.ANSWER_LOST, Fault.LATE)
CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many transactions in place of one."""
    monkeypatch.setattr(restore_chunks, "CHUNK_KEYS", 4)


def at(number: int, fault: Fault) -> Script:
    async def script(call: Call) -> Fault:
        return fault if call.number == number else Fault.NONE

    return script


class Died(Exception):
    """The process that restored was killed."""


async def die() -> NoReturn:
    raise Died


def overtaken(target: Target, data: bytes, number: int, made: list[RestoredCluster]) -> Script:
    """Another run begins and ends just before that call."""

    async def script(call: Call) -> Fault:
        if call.number == number:
            made.append(await restore(target.deps, pieces(data), again=True))
        return Fault.NONE

    return script


async def attempt(target: Target, data: bytes, script: Script, *, again: bool = False) -> FaultyKv:
    faulty = FaultyKv(target.kv, script, die)
    await restore(RestoreDeps(faulty, target.clock, target.ids), pieces(data), again=again)
    return faulty


async def calls_of(data: bytes) -> int:
    return len((await attempt(Target(), data, soundly)).calls)


def sound_cluster(target: Target) -> None:
    assert {one.rule for one in target.violations()} == {"node-adopted"}
    assert str(RestoreMarkKey()) not in target.stored


async def serves(target: Target) -> bool:
    """Whether a server that is started on the prefix makes or finds a cluster."""
    if str(ClusterKey()) in target.stored:
        return True
    put = Put(bytes(LeaderKey()), b"{}")
    won = await target.kv.txn(Request(writes=(put,)), deadline_ms=DEADLINE_MS)
    fence = Compare(bytes(LeaderKey()), won.revision)
    first = bootstrap_request(fence, "another", 1)
    return (await target.kv.txn(first, deadline_ms=DEADLINE_MS)).succeeded


@pytest.mark.slow
async def test_given_a_crash_at_any_transaction_then_no_server_serves_and_a_second_run_ends(
    backup: Backup,
) -> None:
    data = backup.data
    count = await calls_of(data)
    assert count > 10
    for number in range(1, count + 1):
        for fault in CRASHES:
            target = Target()
            with pytest.raises(Died):
                await attempt(target, data, at(number, fault))
            is_whole = number == count and fault is Fault.CRASH_AFTER
            has_mark = str(RestoreMarkKey()) in target.stored

            assert (str(ClusterKey()) in target.stored) is is_whole
            if not is_whole:
                if has_mark:
                    with pytest.raises(Conflict, match="prefix-not-empty"):
                        await restore(target.deps, pieces(data))
                await restore(target.deps, pieces(data), again=True)
            sound_cluster(target)


async def test_given_what_a_killed_restore_left_then_no_leader_makes_a_cluster_of_it(
    backup: Backup,
) -> None:
    data = backup.data
    count = await calls_of(data)
    for number in range(3, count + 1):
        target = Target()
        with pytest.raises(Died):
            await attempt(target, data, at(number, Fault.CRASH_BEFORE))

        assert not await serves(target)


@pytest.mark.slow
async def test_given_lost_calls_and_answers_anywhere_then_the_same_cluster_is_restored_once(
    backup: Backup,
) -> None:
    data = backup.data
    sound = Target()
    await restore(sound.deps, pieces(data))
    count = await calls_of(data)
    for number in range(1, count + 1):
        for fault in LOSSES:
            target = Target()
            faulty = await attempt(target, data, at(number, fault))
            await faulty.deliver()

            assert target.stored == sound.stored, (number, fault)
            sound_cluster(target)


@pytest.mark.slow
async def test_given_another_run_that_takes_over_anywhere_then_the_first_one_writes_no_more(
    backup: Backup,
) -> None:
    data = backup.data
    count = await calls_of(data)
    for number in range(3, count + 1):
        target = Target()
        made = list[RestoredCluster]()

        with pytest.raises(Conflict) as refused:
            await attempt(target, data, overtaken(target, data, number, made))

        record = target.facts().get(ClusterKey())
        assert refused.value.code == "prefix-not-empty"
        assert record is not None
        assert record.cluster_id == made[0].cluster_id
        sound_cluster(target)


async def test_given_two_that_begin_at_once_then_one_of_them_restores(backup: Backup) -> None:
    data, target = backup.data, Target()

    async def rival(call: Call) -> Fault:
        if call.number == 2:
            await restore(target.deps, pieces(data))
        return Fault.NONE

    with pytest.raises(Conflict, match="prefix-not-empty"):
        await attempt(target, data, rival)

    sound_cluster(target)


@pytest.mark.parametrize("is_begun", [False, True])
async def test_given_a_killed_run_whose_first_transaction_arrives_late_when_run_again_then_it_ends(
    backup: Backup, is_begun: bool
) -> None:
    data, target = backup.data, Target()
    source = read_backup_facts(pieces(data)()).source

    def killed(restore_id: str) -> RestoreStore:
        mark = RestoreMark(restore_id=restore_id, source=source, begun_at_ms=1)
        return RestoreStore(target.kv, target.clock, mark, DEADLINE_MS)

    if is_begun:
        await killed("first").begin(again=False)

    async def late(call: Call) -> Fault:
        if call.number == 2:  # it has read, and takes over next
            await killed("second").begin(again=is_begun)
        return Fault.NONE

    await attempt(target, data, late, again=True)

    sound_cluster(target)


async def test_given_rivals_that_take_over_without_end_when_run_again_then_it_gives_up(
    backup: Backup,
) -> None:
    data, target = backup.data, Target()
    source = read_backup_facts(pieces(data)()).source

    async def rival(call: Call) -> Fault:
        if call.number % 2 == 0:
            mark = RestoreMark(restore_id=f"rival-{call.number}", source=source, begun_at_ms=1)
            await RestoreStore(target.kv, target.clock, mark, DEADLINE_MS).begin(again=True)
        return Fault.NONE

    with pytest.raises(Conflict, match="prefix-not-empty"):
        await attempt(target, data, rival, again=True)

    assert str(ClusterKey()) not in target.stored


async def test_given_a_store_that_answers_nothing_then_unavailable_and_no_cluster(
    backup: Backup,
) -> None:
    data, target = backup.data, Target()

    async def silent(call: Call) -> Fault:
        return Fault.NEVER_SENT if call.number > 5 else Fault.NONE

    with pytest.raises(MetaError) as raised:
        await attempt(target, data, silent)

    assert raised.value.code in ("not-ready", "unavailable")
    assert str(ClusterKey()) not in target.stored

"""Bugs planted in how large versions are written: lives with a fault anywhere find each."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from keys.commit.batch import Batch
from keys.commit.committer import Committer
from keys.commit.copying import KeyCopier, KeysLeft
from keys.commit.staging import PartsReference, parts_of
from keys.model.log import StagedRef
from keys.model.staging.parts import BatchPartKey
from keys.store.kv import Delete, Kv, Put, Request, TxnAnswer
from keys.value import StoredPart
from metasrv_base.errors import MetaError
from tests.keys.catalog import snapshots
from tests.keys.catalog.large.large_versions import (
    calls_of,
    changed,
    committed,
    faults,
    keys_of,
    loaded,
    written,
)
from tests.keys.catalog.snapshots import Cluster, plain, scenario
from tests.keys.commit.leading_committer import Store, count, lost_answer_and_deposed

Patch = tuple[Any, str, Any]


async def named_before_they_are_there(
    self: Committer, batch: str, what: str, items: Iterable[StoredPart]
) -> StagedRef:
    """The parts are written once the version has happened."""
    reference, parts = PartsReference(batch), list[tuple[BatchPartKey, bytes]]()
    for key, raw in parts_of(batch, what, items, part_bytes=self.sizes.part_bytes):
        parts.append((key, raw))
        reference.add(raw)
    LATE[self] = parts
    return reference.made()


LATE: dict[Committer, list[tuple[BatchPartKey, bytes]]] = {}
_COPY = KeyCopier.copy


async def with_late_parts(self: KeyCopier, head: Any, left: KeysLeft, ops_max: int) -> int:
    for parts in LATE.values():
        for key, raw in parts:
            put = Request(compares=(head.fence,), writes=(Put(bytes(key), raw),))
            await _store_of(self).txn(put, deadline_ms=3_000)
    LATE.clear()
    return await _COPY(self, head, left, ops_max)


async def and_forgets(self: KeyCopier, head: Any, left: KeysLeft, ops_max: int) -> int:
    """The parts are deleted once the keys are written."""
    revision = await _COPY(self, head, left, ops_max)
    gone = [
        Delete(bytes(BatchPartKey(left.value.staged.batch, number)))
        for number in range(left.value.staged.parts)
    ]
    await _store_of(self).txn(Request((head.fence,), tuple(gone)), deadline_ms=3_000)
    return revision


async def with_deletes_left_out(self: KeyCopier, head: Any, left: KeysLeft, ops_max: int) -> int:
    """A leader that goes on with the keys of the one before deletes none."""
    if not left.value.copied:
        return await _COPY(self, head, left, ops_max)
    send = self._send

    async def puts(batch: Batch) -> tuple[TxnAnswer, bool]:
        writes = tuple(write for write in batch.request.writes if isinstance(write, Put))
        return await send(replace(batch, request=replace(batch.request, writes=writes)))

    return await _COPY(KeyCopier(puts, self._clock), head, left, ops_max)


def _store_of(copier: KeyCopier) -> Kv:
    """The store of the committer whose method sends the batches."""
    committer = cast("Any", copier._send).__self__
    assert isinstance(committer, Committer)
    return committer._kv


async def nothing_left(*_: object, **__: object) -> None:
    """A new leader does not look what the one before has left."""


@dataclass(frozen=True)
class Plant:
    patches: tuple[Patch, ...]
    found: str
    """A word of the check that finds it."""


PLANTED: dict[str, Plant] = {
    "a flip visible before its parts": Plant(
        (
            (Committer, "stage", named_before_they_are_there),
            (KeyCopier, "copy", with_late_parts),
        ),
        "batch",
    ),
    "parts deleted after the copy": Plant(((KeyCopier, "copy", and_forgets),), "batch"),
    "a leader that leaves the keys of the one before": Plant(
        ((snapshots, "keys_left", nothing_left),), "keys differ"
    ),
    "deletes left out by the leader that goes on": Plant(
        ((KeyCopier, "copy", with_deletes_left_out),), "keys differ"
    ),
}
CALLS = calls_of(changed, committed)


def life(at_call: int) -> str:
    """One life in which the leader of a version that puts and deletes keys is deposed at that call,
    and what is wrong at its end."""
    wrong: list[str] = []

    async def main(at: Cluster) -> None:
        term = await at.lead()
        await committed(term)
        calls = 0

        async def strike(store: Store, request: Request) -> TxnAnswer:
            nonlocal calls
            calls += 1
            if calls - 1 == at_call:
                return await lost_answer_and_deposed(store, request)
            return await store.apply(request)

        at.store.faults = [strike] * 60
        with suppress(MetaError):
            await changed(term)
        at.store.faults = []
        try:
            other = await at.lead()
            await other.committer.commit(count("x", 1))
            if plain(await loaded(at.store)) != plain(other.follower.catalog):
                wrong.append("catalogs differ")
            if keys_of(at.store) != written(other.follower.catalog):
                wrong.append("keys differ")
        except MetaError as error:
            wrong.append(f"{error!r} {error.facts}")
        wrong.extend(faults(at.store))

    scenario(main)
    return "; ".join(wrong)


def lives() -> Iterator[str]:
    return (life(at_call) for at_call in range(CALLS))


def test_given_no_bug_when_leaders_die_anywhere_then_nothing_is_wrong() -> None:
    assert [said for said in lives() if said] == []


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_leaders_die_anywhere_then_a_life_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = PLANTED[bug]
    for owner, name, instead in plant.patches:
        monkeypatch.setattr(owner, name, instead)

    assert any(plant.found in said for said in lives())

"""The history of one life as etcd tells it, and the writes of its servers held against that."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from keys.model.cluster import LeaderKey
from keys.store.kv import Kv, Watched
from keys.store.mvcc import TO_THE_END
from tests.killed.forked import Forked


async def history_between(kv: Kv, first: int, last: int, *, without: bytes) -> list[Watched]:
    """All that was written from revision `first` to `last`, but for the key `without`."""
    found = []
    watch = kv.watch(b"", TO_THE_END, start_revision=first)
    async with aclosing(cast(AsyncGenerator[Watched, None], watch)) as entries:
        async for entry in entries:
            events = tuple(event for event in entry.events if event.key != without)
            if events:
                found.append(replace(entry, events=events))
            if entry.revision >= last:
                return found
    raise AssertionError("a watch ended")


def judge_writes(
    servers: Sequence[Forked], log: Sequence[Watched]
) -> tuple[Counter[str], list[str]]:
    """Returns the rare states that were met, and the writes of servers while another led."""
    seat = bytes(LeaderKey())
    wins = [e.mod_revision for entry in log for e in entry.events if e.key == seat and e.value]
    sometimes: Counter[str] = Counter()
    wrong = []
    for server in servers:
        for said in server.told:
            if said["tells"] == "full":
                sometimes["no space"] += 1
            if said["tells"] != "answered":
                continue
            led = max((win for win in wins if win <= said["revision"]), default=0)
            done = said["done"]
            if led != server.term:
                took = "was taken" if done else "was refused"
                sometimes[f"a write of a deposed leader {took}"] += 1
                wrong += [f"{server.name} wrote after it was deposed: {said}"] * done
            elif said["doubted"]:
                sometimes[f"in doubt, and had been {'not done' if done else 'done'}"] += 1
    return sometimes, wrong

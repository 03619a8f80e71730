"""Batches whose commands and versions are in parts, against the same ones in one transaction."""

import asyncio
import re
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.catalog.follower import Follower
from keys.commit.staged_parts import is_staged
from keys.model.families import FAMILIES
from keys.model.log import CatalogUpdateKey
from procedures.ports import TransactionLimits
from tests.metasrv.api.rig import DEADLINE_MS, LONG_LEASE_MS, Server, TermLimits, leader, spec
from tests.metasrv.service.ddl.batch_commands import Command, drawn

WAIT = {"prefer": "wait=10"}
IN_PARTS = TransactionLimits(operations=0, record_bytes=1)
PASSING = (
    (re.compile(rb'"(\w*at_ms)":\d+'), rb'"\1":0'),
    (re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), b"id"),
)
"""Times and ids of procedures, which differ between two runs."""


@dataclass
class Outcome:
    answers: list[tuple[int, Any]] = field(default_factory=list)
    """Status of each batch, and what it applied or why it was refused."""
    versions: list[list[bytes]] = field(default_factory=list)
    """The log entries of each version that a batch made."""
    others: list[bytes] = field(default_factory=list)
    """The same of other versions: tables that a batch has dropped are cleared away one by one."""
    keys: dict[bytes, bytes] = field(default_factory=dict)
    """Keys of metadata, with their values."""
    staged: int = 0
    """Versions that are in parts."""


def plain(raw: bytes) -> bytes:
    for pattern, instead in PASSING:
        raw = pattern.sub(instead, raw)
    return raw


async def outcome_of(batches: list[list[Command]], limits: TransactionLimits) -> Outcome:
    found = Outcome()
    of_term = TermLimits(one_transaction=limits, lease_ms=LONG_LEASE_MS)
    async with leader(nodes=1, of_term=of_term) as one:
        for commands in batches:
            done = await one.client.post("/v1/batch", json={"commands": commands}, headers=WAIT)
            body = done.json()
            told = body["applied"] if done.is_success else (body["code"], body["facts"])
            found.answers.append((done.status_code, told))
            await note(one, found, body["catalog_version"] if done.is_success else None)
        await noted_store(one, found)
    return found


async def note(one: Server, found: Outcome, version: int | None) -> None:
    """Notes the versions since the last one that was noted."""
    follower = one.state.follower
    first = 2 + len(found.versions) + len(found.others)
    for number in range(first, one.version + 1):
        update = follower.update(number)
        assert update is not None
        entries = [plain(entry.model_dump_json().encode()) for entry in update.entries]
        if number == version:
            found.versions.append(entries)
        else:
            found.others.append(b",".join(entries))


async def noted_store(one: Server, found: Outcome) -> None:
    """Notes the keys; a server that starts from this store has the same catalog."""
    started = Follower(one.kv, one.clock, deadline_ms=DEADLINE_MS)
    await started.log.load()
    assert started.catalog.tables.keys() == one.state.follower.catalog.tables.keys()
    for item in one.kv.dump():
        if any(family.key.is_logged and family.claims(item.key) for family in FAMILIES):
            found.keys[plain(item.key)] = plain(item.value)
        found.staged += item.key.startswith(CatalogUpdateKey.under().start) and is_staged(
            item.value
        )


def lenient(command: Command) -> Command:
    """The same, without a refusal of what is there already, or is not."""
    ((op, said),) = command.items()
    told: dict[str, Any] = {
        key: True if key == "if_exists" else value for key, value in said.items()
    }
    for key in ("schema", "table"):
        if isinstance(told.get(key), dict):
            told[key] = {**told[key], "if_not_exists": True}
    return {op: told}


OPENING: list[Command] = [
    {"create_schema": {"catalog": "main", "schema": {"name": "a"}}},
    *(
        {"create_table": {"catalog": "main", "schema": schema, "table": spec("t")}}
        for schema in ("public", "a")
    ),
]


@given(seed=st.integers(0, 10_000), sizes=st.lists(st.integers(1, 3), min_size=2, max_size=8))
@settings(max_examples=12)
@pytest.mark.slow
def test_given_any_batches_when_all_are_in_parts_then_all_is_as_in_one_transaction(
    seed: int, sizes: list[int]
) -> None:
    rng = Random(seed)
    batches = [OPENING, *([lenient(drawn(rng)) for _ in range(size)] for size in sizes)]

    whole = asyncio.run(outcome_of(batches, TransactionLimits()))
    parted = asyncio.run(outcome_of(batches, IN_PARTS))

    assert parted.answers == whole.answers
    assert parted.versions == whole.versions
    assert sorted(parted.others) == sorted(whole.others)
    assert parted.keys == whole.keys
    assert (whole.staged, parted.staged) == (0, len(parted.versions))

"""Parts that nothing names are deleted, and no others."""

import pytest

from keys.commit.staging import ENTRIES
from keys.model.log import SchemaCreated
from keys.model.staging.parts import BatchPartKey
from metasrv.leadership.log import unnamed_parts
from metasrv.leadership.log.unnamed_parts import UnnamedParts
from procedures.ports import TransactionLimits
from tests.keys.commit.large_changes import BY
from tests.keys.model.staged_samples import SCHEMA
from tests.metasrv.api.rig import Server, TermLimits, leader, spec

SMALL = TermLimits(one_transaction=TransactionLimits(operations=3))
ENTRY = SchemaCreated(info=SCHEMA)


def parts(one: Server) -> set[str]:
    start = BatchPartKey.under().start
    return {item.key.decode() for item in one.kv.dump() if item.key.startswith(start)}


async def large_batch(one: Server) -> None:
    where = {"catalog": "main", "schema": "public"}
    made = [{"create_table": {**where, "table": spec(f"t{number}")}} for number in range(4)]
    done = await one.client.post(
        "/v1/batch", json={"commands": made}, headers={"prefer": "wait=10"}
    )
    assert done.status_code == 200, done.text


async def test_given_parts_of_a_version_that_never_happened_then_they_go_and_named_ones_stay() -> (
    None
):
    async with leader(of_term=SMALL) as one:
        await large_batch(one)
        named = parts(one)
        await one.term.committer.stage(f"{BY}.1.1", ENTRIES, [ENTRY])
        await one.term.committer.stage(f"{BY}.1.2", ENTRIES, [ENTRY] * 3)
        assert len(parts(one)) == len(named) + 2

        assert await UnnamedParts(one.term).tidy(0) == 2

        assert parts(one) == named != set()
        assert await UnnamedParts(one.term).tidy(0) == 0


async def test_given_parts_of_a_procedure_that_is_not_over_then_they_stay() -> None:
    async with leader(of_term=SMALL) as one:
        one.term.manager._stager.under_way.add(BY)
        await one.term.committer.stage(f"{BY}.1.1", ENTRIES, [ENTRY])

        assert await UnnamedParts(one.term).tidy(0) == 0
        one.term.manager._stager.under_way.clear()
        assert await UnnamedParts(one.term).tidy(0) == 1


async def test_given_more_parts_than_a_look_reads_then_the_next_goes_on_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leader(of_term=SMALL) as one:
        for number in range(5):
            await one.term.committer.stage(f"{BY}.1.{number}", ENTRIES, [ENTRY])
        chore = UnnamedParts(one.term)
        monkeypatch.setattr(unnamed_parts, "PAGE_KEYS_MAX", 2)
        assert [await chore.tidy(0) for _ in range(3)] == [2, 2, 1]
        assert parts(one) == set()

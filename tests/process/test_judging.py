"""The judges of this folder see what they are for: each planted fault is named."""

from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from metasrv.sdk.rows.table import AsyncTable
from tests.process.harness.ddl_clients import Attempt, Client, Manner, out_of_order, wrong_of
from tests.process.harness.writer import Writer, word_of, wrong_rows

CREATE = "table.created"


def update(version: int, token: str, table_id: int = 1024) -> dict[str, Any]:
    info = {"name": token, "table_id": table_id, "options": {}}
    entry = {"op": CREATE, "info": info}
    return {"version": version, "procedure": f"p-{version}", "entries": [entry]}


async def judged(
    attempt: Attempt, *updates: dict[str, Any], endings: tuple[str, ...] = ()
) -> list[str]:
    async with httpx.AsyncClient() as http:
        client = Client(0, ["http://nowhere"], Manner.ONCE, http, 0, attempts=[attempt])
        ended = {"last": {"client": {"request_id": ""}}}
        return wrong_of([client], {u["version"]: u for u in updates}, dict.fromkeys(endings, ended))


@pytest.mark.parametrize(
    ("told", "times", "holds"),
    [
        ("ok", 1, True),
        ("ok", 0, False),
        ("ok", 2, False),
        ("maybe", 0, True),
        ("maybe", 1, True),
        ("maybe", 2, False),
        ("fail", 0, True),
        ("fail", 1, False),
    ],
)
async def test_given_what_a_client_was_told_then_the_log_must_say_the_same(
    told: str, times: int, holds: bool
) -> None:
    attempt = Attempt(CREATE, "c0_1", "POST", "/", told=told)
    updates = [update(1 + n, "c0_1", table_id=1024 + n) for n in range(times)]

    assert (await judged(attempt, *updates) == []) is holds


async def test_given_an_accepted_change_without_an_end_then_it_is_named() -> None:
    attempt = Attempt(CREATE, "c0_1", "POST", "/", procedure="p-1")

    assert await judged(attempt, endings=("p-1",)) == []
    assert "has no end" in (await judged(attempt))[0]


async def test_given_an_id_twice_or_a_version_missing_then_it_is_named() -> None:
    attempt = Attempt(CREATE, "other", "POST", "/")

    twice = await judged(attempt, update(1, "a"), update(2, "b"))
    gap = await judged(attempt, update(1, "a"), update(3, "b", table_id=1025))

    assert twice == ["table id 1024 was given 2 times"]
    assert gap == ["version 2 is missing"]


def told(version: int, begun_ms: int, told_ms: int) -> Attempt:
    attempt = Attempt(CREATE, "t", "POST", "/", told="ok", version=version)
    attempt.begun_ms, attempt.told_ms = begun_ms, told_ms
    return attempt


def test_given_changes_one_after_another_when_versions_go_back_then_it_is_named() -> None:
    together = [told(2, 0, 20), told(1, 10, 30)]
    after = [*together, told(3, 31, 40)]
    back = [told(2, 0, 20), told(1, 21, 30)]

    assert out_of_order(together) == []
    assert out_of_order(after) == []
    assert len(out_of_order(back)) == 1


def test_given_rows_then_lost_doubled_changed_and_refused_ones_are_named() -> None:
    writer = Writer(cast(AsyncTable, Path()))
    writer.told = {1: "ok", 2: "ok", 3: "fail", 4: "maybe", 5: "ok"}
    rows = [{"id": id, "word": word_of(id)} for id in (1, 1, 3, 4, 7)]
    rows.append({"id": 5, "word": "something else"})

    wrong = wrong_rows(rows, [writer])

    assert wrong == [
        "row 1 is there twice",
        "row 3 is there, and was fail",
        "row 7 is there, and was never sent",
        "row 5 says something else",
        "row 2 was acknowledged and is lost",
    ]

"""Batches that may look at many tables leave the event loop to others."""

import threading
from typing import Any

import pytest

from metasrv.service.ddl import batch as ddl_batch
from procedures.commands import in_order
from tests.metasrv.api.batch_requests import IN_PUBLIC, batch, create
from tests.metasrv.api.rig import leader

DROP_ALL = {"drop_schema": {**IN_PUBLIC, "cascade": True}}


@pytest.mark.parametrize(
    ("commands", "on_the_loop"),
    [
        ((create("u"),), [True, True]),
        ((DROP_ALL,), [False]),
        ((create("u"), DROP_ALL), [False, False]),
    ],
    ids=["few tables", "a cascade", "a cascade, and ids to be given"],
)
async def test_given_a_batch_when_it_may_look_at_many_tables_then_it_is_judged_in_a_thread(
    commands: tuple[dict[str, Any], ...], on_the_loop: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, judgements = ddl_batch._drafted, list[bool]()

    def noted(*given: Any) -> Any:
        judgements.append(threading.current_thread() is threading.main_thread())
        return judged(*given)

    monkeypatch.setattr(ddl_batch, "_drafted", noted)
    async with leader() as one:
        done = await batch(one, *commands)

    assert done.status_code == 200, done.text
    assert judgements == on_the_loop


async def test_given_a_cascade_over_more_tables_than_one_version_changes_then_422_with_the_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_order, "OBJECTS_MAX", 3)
    async with leader() as one:
        for number in range(4):
            await one.make(f"t{number}")
        version = one.version

        done = await batch(one, DROP_ALL)

        assert (done.status_code, done.json()["code"]) == (422, "ddl-too-large")
        facts = {"needs": "a version that changes 4 objects", "limit": 3, "command": 0}
        assert done.json()["facts"] == facts
        assert one.version == version

"""`POST T/check`: what rows and entries of a table came to."""

from typing import Any

import pytest

from metasrv_base.wire.node.checks import DataFault, DataFaults, DataRule
from metasrv_base.wire.node.inputs import BorrowedFile, Snapshot
from metasrv_base.wire.node.jobs import CheckJob, CheckResult
from metasrv_base.wire.node.orders import SetSchema
from procedures.ports import Progress
from tests.fakes.datanodes.serving import data_file
from tests.metasrv.api.fakes import FakeNodes, NoJobs
from tests.metasrv.api.rig import TABLES, leader

WAIT = {"Prefer": "wait=10"}
CHECK = f"{TABLES}/t/check"
STRANGE = DataFault(rule=DataRule.BYTES_UNEXPLAINED, file="notes", count=4)
NOTES = DataFaults(found=[STRANGE], totals={STRANGE.rule: 1})


async def test_given_a_table_without_rows_when_checked_then_it_is_clean_and_no_mark_is_left() -> (
    None
):
    async with leader() as one:
        made = await one.make()
        one.nodes.asked.clear()

        answer = await one.client.post(CHECK, headers=WAIT)

        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "table_id": made["id"],
            "name": "main.public.t",
            "rows": 0,
            "entries": 0,
            "clean": True,
            "totals": {},
            "faults": [],
        }
        told = [order for _, order in one.nodes.asked if isinstance(order, SetSchema)]
        opened = [order.mark for order in told if order.mark is not None]
        closed = [name for order in told for name in order.close_marks]
        assert opened == closed != []


async def test_given_a_table_with_a_fault_when_checked_then_it_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs: list[CheckJob] = []

    async def snapshot(
        nodes: FakeNodes, node: str, region_id: str, mark: str, *, whole: bool = False
    ) -> Snapshot:
        file = BorrowedFile(root="/r", file=data_file("f", frozenset({"1", "2"})))
        known: dict[str, Any] = {"region_id": region_id, "mark": mark, "files": [file]}
        return Snapshot(epoch=1, root="/r", columns=[], version=1, **known)

    async def check(no_jobs: NoJobs, job: CheckJob, *, progress: Progress) -> CheckResult:
        jobs.append(job)
        return CheckResult(job_id=job.job_id, rows_in=2, entries=0, faults=NOTES)

    monkeypatch.setattr(FakeNodes, "snapshot", snapshot)
    monkeypatch.setattr(NoJobs, "check", check)
    async with leader() as one:
        await one.make()

        answer = await one.client.post(CHECK, headers=WAIT)

        body = answer.json()
        assert (answer.status_code, body["clean"], body["rows"]) == (200, False, 2)
        assert body["totals"] == {"bytes-unexplained": 1}
        (fault,) = body["faults"]
        assert (fault["file"], fault["count"], fault["region_id"]) == (
            "notes",
            4,
            jobs[0].region_id,
        )
        assert (jobs[0].owned, jobs[0].required) == ([1, 2], [1])


async def test_given_a_check_when_only_planned_or_not_waited_for_then_as_any_change() -> None:
    async with leader() as one:
        await one.make()
        one.nodes.asked.clear()

        plan = await one.client.post(CHECK + "?dry_run=true")
        asked = list(one.nodes.asked)
        accepted = await one.client.post(CHECK, headers={"Idempotency-Key": "k"})
        again = await one.client.post(CHECK, headers={"Idempotency-Key": "k", **WAIT})
        none = await one.client.post(f"{TABLES}/absent/check", headers=WAIT)

        assert (plan.json()["kind"], asked) == ("check_table", [])
        assert (accepted.status_code, accepted.json()["kind"]) == (202, "check_table")
        assert (again.status_code, again.json()["clean"]) == (200, True)
        assert again.headers["idempotency-replayed"] == "true"
        assert (none.status_code, none.json()["code"]) == (404, "table-not-found")

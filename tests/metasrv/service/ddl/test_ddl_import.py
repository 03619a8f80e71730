"""`POST T/import`: files that come into a table by the servers' Spark."""

import pytest

from metasrv_base.errors import Refused
from metasrv_base.wire.node.jobs import LoadedRegion, LoadJob, LoadJobResult
from metasrv_base.wire.node.orders import IngestFiles, SetSchema
from procedures.ports import Progress
from tests.fakes.datanodes.serving import data_file
from tests.metasrv.api.fakes import NoJobs
from tests.metasrv.api.rig import TABLES, leader

WAIT = {"Prefer": "wait=10"}
IMPORT = f"{TABLES}/t/import"
BODY = {"paths": ["/in/rows.parquet", "/more"]}


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[LoadJob]:
    """Collects the jobs that were asked for; each finds two rows, of the first region."""
    asked: list[LoadJob] = []

    async def load(no_jobs: NoJobs, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        asked.append(job)
        files = [data_file(f"{job.attempt}/x.parquet", frozenset({"1", "2"}))]
        return LoadJobResult(
            job_id=job.job_id,
            input_digest="d",
            files_in=3,
            rows_in=2,
            bytes_in=20,
            bytes_out=10,
            regions=[LoadedRegion(number=0, files=files)],
        )

    monkeypatch.setattr(NoJobs, "load", load)
    return asked


async def test_given_files_when_imported_then_regions_prepare_and_take_what_the_job_wrote(
    jobs: list[LoadJob],
) -> None:
    async with leader() as one:
        made = await one.make()
        one.nodes.asked.clear()

        answer = await one.client.post(IMPORT, json=BODY, headers=WAIT)

        assert answer.status_code == 200, answer.text
        assert answer.json() == {
            "table_id": made["id"],
            "name": "main.public.t",
            "rows": 2,
            "files": 3,
            "bytes": 20,
            "regions": 1,
        }
        (job,) = jobs
        assert job.paths == BODY["paths"]
        assert [(column.name, column.stored.id) for column in job.columns] == [
            (column["name"], column["id"]) for column in made["columns"]
        ]
        orders = [order for _, order in one.nodes.asked]
        taken = [order for order in orders if isinstance(order, IngestFiles)]
        assert [order.prepares for order in taken] == [True, False]
        assert {(order.index, order.attempt) for order in taken} == {(0, job.attempt)}
        told = [order for order in orders if isinstance(order, SetSchema)]
        assert all(order.reserves_version for order in told if order.mark is not None)
        assert [name for order in told for name in order.close_marks] != []


async def test_given_rows_that_the_table_cannot_have_when_imported_then_they_are_in_the_answer(
    jobs: list[LoadJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def load(no_jobs: NoJobs, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        found, expected = "a column odd in /in/x", "columns of the table"
        raise Refused("invalid-request", pointer="/paths", found=found, expected=expected)

    monkeypatch.setattr(NoJobs, "load", load)
    async with leader() as one:
        await one.make()

        answer = await one.client.post(IMPORT, json=BODY, headers=WAIT)

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert "a column odd in /in/x" in answer.json()["detail"]


@pytest.mark.parametrize(
    "paths", [[], ["rows.parquet"], ["/in/../etc"], ["/in/", "/in"], ["/in", "/in"], ["/in\0"]]
)
async def test_given_paths_that_are_none_when_imported_then_it_is_refused(
    jobs: list[LoadJob], paths: list[str]
) -> None:
    async with leader() as one:
        await one.make()

        answer = await one.client.post(IMPORT, json={"paths": paths}, headers=WAIT)

        assert (answer.status_code, jobs) == (422, [])


async def test_given_an_import_when_only_planned_then_its_steps_are_said_and_nothing_is_asked(
    jobs: list[LoadJob],
) -> None:
    async with leader() as one:
        await one.make()
        one.nodes.asked.clear()

        plan = (await one.client.post(IMPORT + "?dry_run=true", json=BODY)).json()

        assert (plan["kind"], one.nodes.asked, jobs) == ("import_table", [], [])
        steps = [step["step"] for step in plan["steps"]]
        assert steps == ["begin", "mark", "load", "prepare", "decide", "take", "close"]
        assert plan["last_cancellable_step"] == "decide"

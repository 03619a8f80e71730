"""The way of a create and of a batch of rows through the code: which files and forms, how many.

An engineer who follows a call reads these files, and learns these forms. The bounds are those of
today and only fall. Run with `-s` to see the paths, the forms, and the classes that carry them.
`tests/walks/call_forms.py` says how forms are counted: a create is JSON, the columns of its spec,
those of the stored table and those of the answer; a batch of rows is JSON, columns by id, the batch
for one region, its rows by family, and the record of the log.
"""

import orjson

from dataplane.datanode.regions.region_owner import RegionOwner
from dataplane.frontend.http.app import build_app
from dataplane.region.disk.memory_disk import MemoryFile
from dataplane.region.engine.intake import take_in
from dataplane.region.engine.writer import WriteGroup
from keys.commit import batch
from keys.commit.committer import Committer
from keys.store.memory import MemoryKv
from metasrv.api.http import respond
from metasrv.service.ddl import ddl_create
from procedures.kinds.tables import create_table
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.http.requests import ROWS
from tests.metasrv.api.fakes import FakeNodes
from tests.metasrv.api.raw import JSON, Sent, send
from tests.metasrv.api.rig import leader
from tests.walks.call_forms import CallForms
from tests.walks.call_path import CallPath

CREATE_FILES_MAX = 18
"""The aim is 15."""
ROWS_FILES_MAX = 14
"""The aim is 12."""
CREATE_FORMS_MAX = 4
ROWS_FORMS_MAX = 5
ROWS_CARRIERS_MAX = 13
"""Classes of the product that have all rows in a field."""


async def test_given_a_create_when_it_is_followed_then_it_passes_few_files() -> None:
    path = CallPath(
        ddl_create.plan_create_table,
        create_table.create,
        FakeNodes.send,
        Committer.commit,
        batch.seal,
        batch.outcome_of,
        MemoryKv.txn,
        respond.changed,
    )

    async with leader() as one:
        with path.recorded():
            await one.make()

    print(path)
    assert {"metasrv/api/catalog/tables.py", "keys/commit/batch.py"} <= set(path.files)
    assert len(path.files) <= CREATE_FILES_MAX, str(path)


async def test_given_a_batch_of_rows_when_it_is_followed_then_it_passes_few_files() -> None:
    path = CallPath(take_in, WriteGroup.admit, MemoryFile.sync, RegionOwner.write)
    body = orjson.dumps({"op": "insert", "rows": [{"id": 1, "a": 1, "b": "x"}]})

    with path.recorded():  # from the start: the hook reaches only threads that begin after it
        async with running() as bench:
            path.files.clear()
            answer = await send(build_app(bench.service), Sent("POST", ROWS, JSON, [body]))
            files = list(path.files)

    path.files = files
    print(path)
    assert answer.status == 200
    assert {"dataplane/frontend/http/api.py", "dataplane/log/segment.py"} <= set(files)
    assert len(files) <= ROWS_FILES_MAX, str(path)


async def test_given_a_create_when_its_forms_are_recorded_then_there_are_few() -> None:
    forms = CallForms("mark_1", "mark_2", 7301, "mark-2")
    columns = [
        {"name": "mark_1", "type": "int64", "nullable": False, "default": 7301},
        {"name": "mark_2", "type": "string", "default": "mark-2"},
    ]

    async with leader() as one:
        with forms.recorded():
            await one.make("t", columns=columns, primary_key=["mark_1"])

    print(forms)
    assert {"TableSpec", "CreateTable", "ProcedureRecord"} <= set(forms.carriers)
    assert len(forms.forms) <= CREATE_FORMS_MAX, str(forms)


async def test_given_a_batch_of_rows_when_its_forms_are_recorded_then_there_are_few() -> None:
    forms = CallForms(7301, 7302, "mark-1", "mark-2")
    rows = [{"id": 1, "a": 7301, "b": "mark-1"}, {"id": 2, "a": 7302, "b": "mark-2"}]
    body = orjson.dumps({"op": "insert", "rows": rows})

    with forms.recorded():  # from the start: the hook reaches only threads that begin after it
        async with running() as bench:
            answer = await send(build_app(bench.service), Sent("POST", ROWS, JSON, [body]))

    print(forms)
    assert answer.status == 200
    assert {"RowsRequest", "Write", "GroupRecord"} <= set(forms.carriers)
    assert len(forms.forms) <= ROWS_FORMS_MAX, str(forms)
    assert len(forms.carriers) <= ROWS_CARRIERS_MAX, str(forms)

"""The way of a create and of a batch of rows through the code: which files, and how many.

An engineer who follows a call reads these files. The bounds are those of today and only fall.
Run with `-s` to see the paths.
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
from tests.house.call_path import CallPath
from tests.metasrv.api.fakes import FakeNodes
from tests.metasrv.api.raw import JSON, Sent, send
from tests.metasrv.api.rig import leader

CREATE_FILES_MAX = 18
"""The aim is 15."""
ROWS_FILES_MAX = 14
"""The aim is 12."""


async def test_given_a_create_when_it_is_followed_then_it_passes_few_files() -> None:
    path = CallPath(
        ddl_create.plan_create_table,
        create_table.create,
        FakeNodes.send,
        Committer.commit,
        batch.seal,
        batch.judge,
        MemoryKv.txn,
        respond.changed,
    )

    async with leader() as one:
        with path.recorded():
            await one.make()

    print(path)
    assert {"metasrv/api/routes/tables.py", "keys/commit/batch.py"} <= set(path.files)
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

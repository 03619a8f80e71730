"""The end of a procedure is answered by what its kind says of itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from keys.model.records import Lock, Resource
from metasrv.api.http.respond import changed
from metasrv.host.toolchain import checkout
from metasrv.service.requests.ddl_request import DdlRequest, ProcedureToSubmit
from metasrv.service.requests.request_context import RequestContext
from metasrv.service.requests.submit_ddl import execute
from metasrv_base.wire.model import WireModel
from procedures.context import Context
from procedures.kinds.registry import KINDS
from procedures.machine import Done, Kind, ProcedureState, Step
from tests.metasrv.api.rig import leader

ANSWERS = ("metasrv/api", "metasrv/service/bodies", "metasrv/service/catalog")
REQUESTS = "metasrv/service/requests"


class CountState(ProcedureState):
    table_id: int = 1


class CountBody(WireModel):
    rows: int
    unit: str = "rows"


async def count(state: CountState, at: Context) -> Done[CountState]:
    return Done(state, {"rows": 7})


def no_locks(state: CountState) -> tuple[Lock, ...]:
    return ()


def resource(state: CountState) -> Resource:
    return Resource.table(state.table_id, "main", "public", "t")


COUNT_ROWS = Kind(
    name="count_rows",
    state=CountState,
    steps={"count": Step(count)},
    no_return="count",
    locks=no_locks,
    resource=resource,
    success=200,
    report=CountBody,
)


async def test_given_a_new_kind_with_a_report_when_it_ends_then_the_report_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(KINDS, COUNT_ROWS.name, COUNT_ROWS)
    asked = RequestContext("POST", "/count", None, "r-1", wait_ms=10_000)
    request = DdlRequest(
        asked, lambda catalog: (), lambda facts: ProcedureToSubmit(COUNT_ROWS, CountState())
    )

    async with leader() as server:
        done = await execute(server.state, request)
        answer = await changed(server.state, asked, done)

    assert answer.status_code == 200
    assert answer.body == b'{"rows":7,"unit":"rows"}'


def test_given_the_answers_of_procedures_then_no_module_of_them_names_a_kind() -> None:
    """A kind is added in its file and in the registry (procedures/kinds/registry.py)."""
    named = {
        f"{path.relative_to(checkout())}: {name}"
        for folder in (*ANSWERS, REQUESTS)
        for path in (checkout() / folder).rglob("*.py")
        for name in _kinds_imported(path)
    }

    assert named == set()


def _kinds_imported(path: Path) -> Iterator[str]:
    names = {kind.name.upper() for kind in KINDS.values()}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("procedures.kinds"):
            yield from (alias.name for alias in node.names if alias.name in names)

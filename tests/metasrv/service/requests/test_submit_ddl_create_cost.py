"""A create costs so many calls of our functions, tasks and requests to the store, and no more.

Counted, not timed: no load of the machine changes it. docs/speed.md says where the time goes.
"""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.key import Key
from keys.value import encode
from metasrv.service.ddl.ddl_create import TableToCreate, table_info
from metasrv.service.ddl.sizes import COPIES, OTHER_BYTES, at_most
from metasrv.service.ddl.table_placing import placing_of
from metasrv.service.requests.ddl_request import FullTableName
from metasrv.service.requests.request_context import RequestContext
from metasrv_base.wire.api.tables import TableSpec
from procedures.ports import NodeView
from procedures.steps.copies.new_routes import table_route
from tests.metasrv.api.counted import CountedKv
from tests.metasrv.api.rig import TABLES, leader, spec

ROOT = Path(__file__).parents[4]
ROOMS = ("metasrv_base", "keys", "procedures", "metasrv")
OURS = tuple(f"{ROOT}/{part}/" for part in ROOMS)
CREATES = 20
CALLS_MAX = 1_374  # of our functions, the store's in memory too: what was counted, and a twentieth
TASKS_MAX = 3  # of the submission, of the procedure, and of its step
LIMITS_MAX = 4  # of time: for the body, for the submission, for the step, and for the client's wait
TURNS_MAX = 13  # of the event loop: what was counted, and one; the store here answers at once
STORE_CALLS = 2  # submit and commit
CLIENTS = 32
SHARED_CALLS = 0.16  # of the store for each create, where so many clients share transactions
SEALED_MAX = 6  # of constructors that test each of their fields: few values, made seldom (0340)
KEYS_MAX = 17  # of the store, each filled in and judged: none is made twice by the command
REPLACED_MAX = 5  # values made by `dataclasses.replace`, at five times the cost of a constructor
ENTERED = asyncio.Timeout.__aenter__.__code__
TURN = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]
REPLACE = dataclasses.replace.__code__
KEY = Key.__post_init__.__code__
OTHER_CALLS = 8  # of the store in all: what a leader asks it for by the clock
OTHER_VALUES = 15  # of each sort in all: what a leader makes by the clock, less than one a create


@dataclass
class Spent:
    calls: int = 0
    tasks: int = 0
    limits: int = 0
    turns: int = 0
    replaced: int = 0
    keys: int = 0
    sealed: int = 0
    """Constructors of `dataclass(frozen=True)`."""


@contextmanager
def counted() -> Iterator[Spent]:
    """Counts calls of functions of our packages, limits of time and turns of the event loop, in
    this thread, and tasks of this loop."""
    spent, loop = Spent(), asyncio.get_running_loop()
    is_ours: dict[CodeType, bool] = {}

    def look(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in is_ours:
                is_ours[code] = code.co_filename.startswith(OURS)
            spent.calls += is_ours[code]
            spent.limits += code is ENTERED
            spent.turns += code is TURN
            spent.replaced += code is REPLACE
            spent.keys += code is KEY
            if code.co_name == "__init__" and code.co_filename == "<string>":
                made = type(frame.f_locals["self"])
                spent.sealed += (
                    made.__module__.startswith(ROOMS) and made.__dataclass_params__.frozen
                )

    def begin(loop: Any, work: Any, **more: Any) -> "asyncio.Task[Any]":
        spent.tasks += 1
        return asyncio.Task(work, loop=loop, **more)

    before = loop.get_task_factory()
    loop.set_task_factory(begin)
    sys.setprofile(look)
    try:
        yield spent
    finally:
        sys.setprofile(None)
        loop.set_task_factory(before)


async def test_given_a_leader_when_tables_are_created_then_each_costs_so_much_at_most() -> None:
    async with leader(make_kv=CountedKv) as one:
        assert isinstance(one.kv, CountedKv)
        headers = {"prefer": "wait=10"}
        for number in range(5):
            await one.make(f"warm{number}")
        before = one.kv.counts.calls
        with counted() as spent:
            for number in range(CREATES):
                await one.client.post(TABLES, json=spec(f"t{number}"), headers=headers)

        assert one.kv.counts.calls - before <= STORE_CALLS * CREATES + OTHER_CALLS
        assert spent.tasks <= TASKS_MAX * CREATES
        assert spent.limits <= LIMITS_MAX * CREATES
        assert spent.sealed <= SEALED_MAX * CREATES + OTHER_VALUES
        assert spent.replaced <= REPLACED_MAX * CREATES + OTHER_VALUES
        assert spent.keys <= KEYS_MAX * CREATES + OTHER_VALUES
        assert spent.turns <= TURNS_MAX * CREATES
        assert spent.calls <= CALLS_MAX * CREATES


async def test_given_many_clients_when_tables_are_created_then_they_share_transactions() -> None:
    async with leader(make_kv=CountedKv) as one:
        assert isinstance(one.kv, CountedKv)
        headers, numbers = {"prefer": "wait=10"}, iter(range(4 * CLIENTS))

        async def client() -> None:
            for number in numbers:
                answer = await one.client.post(TABLES, json=spec(f"t{number}"), headers=headers)
                assert answer.status_code == 201, answer.text

        await one.make("warm")
        before = one.kv.counts.calls
        await asyncio.gather(*(client() for _ in range(CLIENTS)))

        assert one.kv.counts.calls - before <= SHARED_CALLS * 4 * CLIENTS + OTHER_CALLS


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,60}", fullmatch=True)
numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9))
columns = st.lists(st.tuples(names, st.one_of(texts, numbers, st.none())), max_size=12)


@given(
    columns=columns,
    options=st.dictionaries(names, texts, max_size=4),
    root=names,
    replicas=st.integers(1, 3),
)
def test_given_any_table_when_bounded_then_it_is_not_larger(
    columns: list[tuple[str, Any]], options: dict[str, str], root: str, replicas: int
) -> None:
    key = [{"name": "id", "type": "int64", "nullable": False}]
    more = [{"name": n, "type": "string", "default": default} for n, default in columns]
    body = {"name": "t", "columns": [*key, *more], "primary_key": ["id"], "options": options}
    raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    made = TableToCreate(FullTableName("main", "public", "t"), TableSpec.model_validate(body))
    info = table_info(made, placing_of(made.spec, "main", Catalog()), 2**31 - 1, 1)
    node = NodeView(
        node_id="dn-1", zone="a", root=f"/{root}", alive=True, regions=0, disk_free_bytes=1
    )
    nodes = tuple(dataclasses.replace(node, node_id=f"dn-{one}") for one in range(replicas))
    route = table_route(2**31 - 1, (nodes,))
    asked = RequestContext("POST", TABLES, body, "r", body_bytes=len(raw))

    said = len(asked.client().model_dump_json())
    exact = COPIES * (len(encode(info)) + len(encode(route))) + said + OTHER_BYTES

    assert at_most(info, route, len(raw)) >= exact

"""Whatever is sent, the answer is one that the document declares: its status, type, headers, body.

Schemathesis makes the requests from the document, right ones and wrong ones; they are sent in
process, to a server that leads. The same ones in each run.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from metasrv.api.openapi import document
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.service.state.stream_places import STREAMS_MAX, WATCHERS_MAX
from tests.metasrv.api.rig import leader

pytestmark = pytest.mark.badinput
CASES = 3  # of each route and mode
ANSWER_S_MAX = 60.0
CHECKS: list[Any] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEW = settings(
    max_examples=CASES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# What makes an answer wait: for a version that never comes, or for a person's patience.
WAITS = (("query", "min_version"), ("headers", "Prefer"))
PARTS = ("method", "url", "headers", "params", "cookies", "json", "data", "files")

Send = Callable[[httpx.Request], httpx.Response]


def request_of(case: Any) -> httpx.Request:
    for part, name in WAITS:
        (getattr(case, part) or {}).pop(name, None)
    told = case.as_transport_kwargs(base_url="http://ms-1")
    made: Any = requests.Request(**{part: told.get(part) for part in PARTS}).prepare()
    return httpx.Request(made.method, made.url, headers=dict(made.headers), content=made.body)


def undeclared(operation: Any, mode: GenerationMode, send: Send) -> Iterator[str]:
    """Yields the faults of the answers of one route."""

    @FEW
    @given(operation.as_strategy(generation_mode=mode))
    def answers_are_declared(case: Any) -> None:
        answer = send(request_of(case))
        assert answer.status_code != 500, answer.text
        case.validate_response(answer, checks=CHECKS)

    try:
        answers_are_declared()
    except Unsatisfiable:
        return  # nothing that could be sent to it is wrong: its one parameter is any text
    except (AssertionError, FailureGroup) as error:
        yield f"{operation.label} ({mode.value}): {error}"


def explored(send: Send) -> list[str]:
    schema: Any = schemathesis.openapi.from_dict(document())
    operations = [found.ok() for found in schema.get_all_operations()]
    return [
        wrong
        for operation in operations
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        for wrong in undeclared(operation, mode, send)
    ]


async def test_given_any_request_when_answered_then_the_document_declares_it() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        compaction = LogCompaction(one.term, one.kv, one.state.follower, one.clock)
        compacting = tasks.create_task(compaction.run())  # it answers requests for a snapshot
        one.state.watchers.open = WATCHERS_MAX
        one.state.streams.open = STREAMS_MAX  # in process an answer comes whole, or never
        loop = asyncio.get_running_loop()

        def send(request: httpx.Request) -> httpx.Response:
            asked = asyncio.run_coroutine_threadsafe(one.client.send(request), loop)
            return asked.result(ANSWER_S_MAX)

        wrong = await asyncio.to_thread(explored, send)
        compacting.cancel()

    assert wrong == [], "\n".join(wrong)

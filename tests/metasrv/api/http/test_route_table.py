"""The first request of a server costs what any other costs."""

from collections.abc import Callable
from typing import Any

import fastapi.routing
import pytest
from fastapi import FastAPI

from metasrv.server.app import build_ahead
from tests.metasrv.api.rig import leader


@pytest.mark.parametrize("path", ["/v1/nodes", "/v1/catalogs/main/schemas", "/-/none"])
async def test_given_built_routes_when_first_asked_then_none_is_made(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    router: Any = fastapi.routing._IncludedRouter
    sound: Callable[[Any, Any], Any] = router._build_effective_context

    def build(self: Any, route: Any) -> Any:
        made.append(route)
        return sound(self, route)

    async with leader() as one:
        build_ahead(one.app)
        monkeypatch.setattr(router, "_build_effective_context", build)

        await one.client.get(path)

    assert made == []


async def test_given_an_app_when_first_asked_then_no_middleware_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leader() as one:
        framework = one.app.behind
        assert isinstance(framework, FastAPI)
        monkeypatch.setattr(framework, "build_middleware_stack", pytest.fail)

        answer = await one.client.get("/v1/nodes")

    assert answer.status_code == 200


async def test_given_a_create_when_answered_then_the_framework_was_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leader() as one:
        monkeypatch.setattr(one.app, "behind", pytest.fail)

        await one.make("t")

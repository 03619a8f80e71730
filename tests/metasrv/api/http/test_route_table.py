"""The first request of a server costs what any other costs."""

from collections.abc import Callable
from typing import Any

import fastapi.routing
import pytest

from metasrv.server.app import build_routes
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
        build_routes(one.app)
        monkeypatch.setattr(router, "_build_effective_context", build)

        await one.client.get(path)

    assert made == []

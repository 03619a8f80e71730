"""Changes that wait until a test lets them go on."""

from typing import Any

from tests.metasrv.api.rig import TABLES, Server, spec


async def create_held_up(one: Server, name: str = "t", **more: Any) -> str:
    """The URL of a create that is under way until the gate opens."""
    one.nodes.gate.clear()
    answer = await one.client.post(TABLES, json=spec(name, **more))
    assert answer.status_code == 202
    await one.nodes.reached.wait()
    found: str = answer.headers["location"]
    return found


async def end_of(one: Server, where: str) -> dict[str, Any]:
    """The procedure once it is over, by long polls."""
    tag = '"none"'
    while True:
        shown = await one.client.get(where, headers={"If-None-Match": tag, "Prefer": "wait=20"})
        body: dict[str, Any] = shown.json()
        if body["done"]:
            return body
        tag = shown.headers["etag"]

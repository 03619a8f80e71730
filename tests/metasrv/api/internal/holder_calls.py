"""Calls by which holders register and acknowledge over HTTP."""

from collections.abc import Callable
from typing import Any

from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    HolderRegisterAnswer,
)
from tests.metasrv.api.rig import (
    Server,
)
from tests.metasrv.holders.samples import acknowledgement, registration

TURNS_MAX = 1_000  # of the loop: each request gives everybody else one


async def register(one: Server, holder_id: str, **more: Any) -> HolderRegisterAnswer:
    said = registration(holder_id, **more).model_dump(mode="json")
    answer = await one.client.post(f"/internal/v1/holders/{holder_id}/register", json=said)
    assert answer.status_code == 200, answer.text
    return HolderRegisterAnswer.model_validate_json(answer.content)


async def acknowledge(
    one: Server, holder_id: str, sequence: int, version: int, *pinned: Any, **more: Any
) -> AcknowledgeAnswer:
    said = acknowledgement(holder_id, sequence, version, *pinned, **more).model_dump(mode="json")
    answer = await one.client.put(f"/internal/v1/holders/{holder_id}/acknowledge", json=said)
    assert answer.status_code == 200, answer.text
    return AcknowledgeAnswer.model_validate_json(answer.content)


async def waits_of(one: Server, path: str, is_it: Callable[[Any], bool]) -> Any:
    """Returns the procedure's reason to wait, once there is one that satisfies *is_it*."""
    for _ in range(TURNS_MAX):
        found = (await one.client.get(path)).json()["waiting_for"]
        if found and is_it(found[0]):
            return found[0]
    raise AssertionError(found)


async def told_all(one: Server, path: str) -> Any:
    """The procedure at its end: the holder acknowledges whatever is published."""
    for sequence in range(10, TURNS_MAX):
        found = (await one.client.get(path)).json()
        if found["done"]:
            return found
        await acknowledge(one, "fe-1", sequence, one.version)
    raise AssertionError(found)

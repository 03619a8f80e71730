"""The list of procedures, read page by page."""

from datetime import UTC, datetime

from tests.metasrv.api.rig import Server

LIST = "/v1/procedures"


HOUR_MS = 3_600_000


async def listed(one: Server, **params: str) -> tuple[list[str], str | None]:
    answer = await one.client.get(LIST, params=params)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return [body["id"] for body in found["procedures"]], found["next_page_token"]


async def all_pages(one: Server, **params: str) -> list[str]:
    found, token = await listed(one, **params)
    while token is not None:
        more, token = await listed(one, **params, page_token=token)
        found += more
    return found


def text_of(wall_ms: int) -> str:
    moment = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

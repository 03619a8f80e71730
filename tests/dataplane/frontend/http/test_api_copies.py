"""Reads of a declared age go to copies near by; what these do not answer, the leader does."""

import httpx
import orjson
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements import regions
from metasrv_base.wire.frontend.feed import AddressChange
from tests.dataplane.frontend.bench import NODE_URL, Bench, running
from tests.dataplane.frontend.http.requests import ROWS as ROWS_PATH
from tests.dataplane.frontend.http.requests import SCAN, get
from tests.dataplane.frontend.statements.calls import ROWS, write
from tests.dataplane.frontend.tables import feed_table

COPY_URL = "http://127.0.0.1:2"
ZONE = "default"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has time to answer, however busy the machine is."""
    monkeypatch.setattr(regions, "COPY_S_MAX", 60.0)


class Asked:
    """The requests of reads, and a copy that does what a test says."""

    def __init__(self, bench: Bench) -> None:
        self.bodies = list[tuple[str, dict[str, object]]]()
        self.copy_answers = True
        bench.way.meet = self.meet

    async def meet(self, request: httpx.Request) -> None:
        url = f"{request.url.scheme}://{request.url.netloc.decode()}"
        self.bodies.append((url, orjson.loads(request.content)))
        if url == COPY_URL and not self.copy_answers:
            raise httpx.ConnectError("nobody listens there", request=request)

    @property
    def urls(self) -> list[str]:
        return [url for url, _ in self.bodies]


async def with_copy(bench: Bench) -> Asked:
    """The region has another copy, in the zone of the frontend, which is the same node here."""
    await write(bench, Op.INSERT, ROWS)
    (only,) = bench.table.regions
    copied = only.model_copy(update={"copies": ("dn-2",)})
    bench.tell(bench.table.model_copy(update={"regions": (copied,)}))
    bench.catalog.take(AddressChange(node="dn-2", address=COPY_URL, zone=ZONE))
    return Asked(bench)


@pytest.mark.parametrize(
    "path", [f"{ROWS_PATH}?key=1", f"{SCAN}?limit=100", f"{SCAN}?apart=true", SCAN]
)
async def test_given_an_age_when_read_then_the_copy_in_its_zone_is_asked_and_told_it(
    path: str,
) -> None:
    async with running(feed_table()) as bench:
        asked = await with_copy(bench)

        got = await get(bench, f"{path}{'&' if '?' in path else '?'}max_lag=5000")
        plain = await get(bench, path)

        assert (got.status, plain.status) == (200, 200)
        assert got.json["rows"] == plain.json["rows"]
        assert asked.urls == [COPY_URL, NODE_URL]
        assert asked.bodies[0][1]["max_lag_ms"] == 5_000
        assert "max_lag_ms" not in asked.bodies[1][1]


async def test_given_a_copy_that_does_not_answer_when_read_then_the_leader_does_and_it_rests() -> (
    None
):
    async with running(feed_table()) as bench:
        asked = await with_copy(bench)
        asked.copy_answers = False

        first = await get(bench, f"{SCAN}?limit=100&max_lag=5000")
        second = await get(bench, f"{SCAN}?limit=100&max_lag=5000")

        assert [len(got.json["rows"]) for got in (first, second)] == [len(ROWS)] * 2
        assert asked.urls.count(COPY_URL) == 1
        assert asked.urls[-1] == NODE_URL


async def test_given_pages_of_one_scan_when_read_then_all_have_the_age_of_the_first() -> None:
    async with running(feed_table()) as bench:
        asked = await with_copy(bench)

        page = await get(bench, f"{SCAN}?limit=4&max_lag=700")
        token = page.json["next_page_token"]
        await get(bench, f"{SCAN}?limit=4&page_token={token}")

        assert [body["max_lag_ms"] for _, body in asked.bodies] == [700, 700]


async def test_given_a_table_without_copies_when_read_then_its_leader_answers() -> None:
    async with running(feed_table()) as bench:
        await write(bench, Op.INSERT, ROWS)
        asked = Asked(bench)

        got = await get(bench, f"{SCAN}?limit=100&max_lag=1")

        assert len(got.json["rows"]) == len(ROWS)
        assert asked.urls == [NODE_URL]

"""Work on a read of one row by its key, counted in calls: no load of the machine changes them."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import dataplane
from dataplane.frontend.http.app import build_app
from dataplane.frontend.planning.row_input import Op
from tests.dataplane.frontend.bench import Bench, T, running
from tests.metasrv.api.raw import Sent, send

CALLS_MAX = 385
"""Calls of our own functions at the frontend and at the node together: 376 as measured.
More than a hundred calls of the framework and of Arrow come on top."""
PASSED_BY = (
    "/fastapi/",
    "/starlette/middleware/",
    "/starlette/routing.py",
    "/starlette/applications",
    "/pyarrow/compute.py",
)
"""Layers of the framework, and functions of Arrow over whole columns."""
OURS = str(Path(dataplane.__file__).parents[1])
TESTS = str(Path(OURS, "tests"))


async def _read(bench: Bench, key: int) -> Counter[str]:
    """Calls by file."""
    app, asked = build_app(bench.service), Sent("GET", f"/v1/tables/main/public/t/rows?key={key}")
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(note)
    try:
        found = await send(app, asked)
    finally:
        sys.setprofile(None)
    assert (found.status, found.json["rows"]) == (200, [{"id": key, "a": key, "b": "x"}])
    return calls


async def _filled(bench: Bench) -> None:
    rows = [{"id": one, "a": one, "b": "x"} for one in range(2_000)]
    await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
    (slot,) = bench.node
    assert slot.owner is not None
    slot.owner.region.maintenance.flush()
    for key in (1, 2, 3):
        await _read(bench, key)


async def test_given_a_row_in_memory_when_read_by_key_then_few_functions_are_called() -> None:
    async with running() as bench:
        await _filled(bench)

        calls = await _read(bench, 1_000)

    own = {
        file: count
        for file, count in calls.items()
        if file.startswith(OURS) and not file.startswith(TESTS) and "site-packages" not in file
    }
    others = [file for file in calls if any(part in file for part in PASSED_BY)]
    assert sum(own.values()) <= CALLS_MAX, Counter(own).most_common(20)
    assert others == []

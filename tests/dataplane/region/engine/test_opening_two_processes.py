"""Two real processes on one root: the one that was there first stops at its next look."""

import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from tests.dataplane.region.rig import SPEC, contents, order, place, write

ROOT = Path(__file__).parents[4]
WRITER = """
import sys
from metasrv_base.errors import MetaError
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from tests.dataplane.region.rig import order, place, write

region = Region.open(place(LocalDisk(), sys.argv[1]), order(1))
print("open", flush=True)
for number in range(1_000_000):
    try:
        write(region, f"old-{number}", {f"old-{number:07}".encode(): (number, None)})
        if number % 50 == 49:
            region.maintenance.flush()
    except MetaError as error:
        print("stopped", error.code, flush=True)
        break
    print(number, flush=True)
"""


@pytest.mark.process
def test_given_a_writing_process_when_another_opens_then_the_first_stops_and_no_row_is_lost(
    tmp_path: Path,
) -> None:
    root = str(tmp_path / "region")
    Region.create(place(LocalDisk(), root), SPEC, epoch=1).close()
    command = [sys.executable, "-c", WRITER, root]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as old:
        assert old.stdout is not None
        assert old.stdout.readline() == "open\n"
        for _ in range(120):
            old.stdout.readline()

        new = Region.open(place(LocalDisk(), root), order(2))
        write(new, "new", {b"new": (1, None)})
        said = old.stdout.read().split("\n")
        old.wait(timeout=240)

    acknowledged = 120 + sum(line.isdecimal() for line in said)
    seen = contents(new)
    assert said[-2] in ("stopped outcome-unknown", "stopped stale-epoch")
    for number in range(acknowledged):
        assert seen[f"old-{number:07}".encode()] == (number, None)
    assert len(seen) - acknowledged in (1, 2), "and at most the batch that was in flight"
    assert contents(Region.open(place(LocalDisk(), root), order(3))) == seen

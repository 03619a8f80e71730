"""`make bench`: the measurements of this folder, one after the other; none of them is a test.

Those of LEFT_OUT are run by hand. The last lines name the commands that failed.
"""

import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

MEASUREMENTS = (
    ("service.creates",),
    ("service.create_floor",),
    ("service.reads",),
    ("service.many_tables",),
    ("service.recovery",),
    ("service.history_bytes",),
    ("service.metastores",),
    ("catalog.starts",),
    ("catalog.heartbeats",),
    ("catalog.kept", "--tables=20000"),
    ("catalog.bounded",),
    ("catalog.batches",),
    ("data.failovers",),
    ("data.switches",),
    ("data.recopies",),
    ("data.copied_writes",),
    ("data.regions",),
    ("data.region_costs",),
    ("data.batch_costs",),
    ("data.job_costs",),
    ("data.rows",),
    ("data.sql_routes",),
    ("data.memory", "--mib=256"),
    ("schema.schema_waits",),
    ("schema.add_indexes",),
    ("schema.watchers",),
    ("schema.foreground",),
    ("schema.backfills",),
)
"""Modules of `benchmarks`, with their arguments."""
LEFT_OUT: Mapping[str, str] = {
    "catalog.large": "a million tables, for which etcd takes 14 GiB of memory",
    "service.event_loop": "seven loads at their full sizes, of which one takes ten minutes",
    "targets": "it runs some of the measurements again",
}
"""Measurements that `make bench` does not run, and why."""
BIG_REGION = "tests/dataplane/pipelines/big_region.py"
COMMANDS = (
    *(
        (sys.executable, "-m", f"benchmarks.{module}", *arguments)
        for module, *arguments in MEASUREMENTS
    ),
    (sys.executable, "-m", "tests.dataplane.pipelines.drivers.two_ways"),
    (sys.executable, "-m", "pytest", "-q", "-s", "-m", "slow", BIG_REGION),
)


def failures(ended: Iterable[tuple[Sequence[str], int]]) -> list[str]:
    """Returns a line for each command that failed. A code is negative if a signal ended it."""
    return [f"FAILED with {code}: {' '.join(command[1:])}" for command, code in ended if code != 0]


def main() -> int:
    ended = [(command, subprocess.call(command)) for command in COMMANDS]
    failed = failures(ended)
    print(*failed, sep="\n", end="\n" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

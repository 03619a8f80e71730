"""`make bench`: every measurement, one after the other; none of them is a test."""

import subprocess
import sys

COMMANDS = (
    (sys.executable, "-m", "benchmarks.service.creates"),
    (sys.executable, "-m", "benchmarks.service.reads"),
    (sys.executable, "-m", "benchmarks.service.many_tables"),
    (sys.executable, "-m", "benchmarks.catalog.starts"),
    (sys.executable, "-m", "benchmarks.catalog.kept", "--tables=20000"),
    (sys.executable, "-m", "benchmarks.catalog.bounded"),
    (sys.executable, "-m", "benchmarks.catalog.batches"),
    (sys.executable, "-m", "benchmarks.service.recovery"),
    (sys.executable, "-m", "benchmarks.data.failovers"),
    (sys.executable, "-m", "benchmarks.data.regions"),
    (sys.executable, "-m", "benchmarks.data.region_costs"),
    (sys.executable, "-m", "benchmarks.data.batch_costs"),
    (sys.executable, "-m", "benchmarks.data.job_costs"),
    (sys.executable, "-m", "benchmarks.data.rows"),
    (sys.executable, "-m", "benchmarks.data.copied_writes"),
    (sys.executable, "-m", "benchmarks.data.sql_routes"),
    (sys.executable, "-m", "benchmarks.service.metastores"),
    (sys.executable, "-m", "benchmarks.schema.schema_waits"),
    (sys.executable, "-m", "benchmarks.schema.add_indexes"),
    (sys.executable, "-m", "benchmarks.schema.foreground"),
    (sys.executable, "-m", "benchmarks.schema.backfills"),
    (sys.executable, "-m", "tests.dataplane.pipelines.drivers.two_ways"),
    (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-m",
        "slow",
        "tests/dataplane/pipelines/big_region.py",
    ),
)


def main() -> int:
    return max(subprocess.call(command) for command in COMMANDS)


if __name__ == "__main__":
    sys.exit(main())

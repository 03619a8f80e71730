"""`make bench`: every measurement, one after the other; none of them is a test."""

import subprocess
import sys

COMMANDS = (
    (sys.executable, "-m", "benchmarks.creates"),
    (sys.executable, "-m", "benchmarks.reads"),
    (sys.executable, "-m", "benchmarks.many_tables"),
    (sys.executable, "-m", "benchmarks.recovery"),
    (sys.executable, "-m", "benchmarks.failovers"),
    (sys.executable, "-m", "benchmarks.regions"),
    (sys.executable, "-m", "benchmarks.region_costs"),
    (sys.executable, "-m", "benchmarks.batch_costs"),
    (sys.executable, "-m", "benchmarks.job_costs"),
    (sys.executable, "-m", "benchmarks.rows"),
    (sys.executable, "-m", "benchmarks.metastores"),
    (sys.executable, "-m", "benchmarks.schema_waits"),
    (sys.executable, "-m", "benchmarks.add_indexes"),
    (sys.executable, "-m", "benchmarks.foreground"),
    (sys.executable, "-m", "benchmarks.backfills"),
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

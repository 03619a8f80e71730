"""Reads reserve the memory that they take, before they take it: each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
TAKEN_MAX = 1.3
"""By what is counted."""
RESIDENT_MAX = 1.3
KEPT_BYTES = 1 << 20
"""The most that allocators keep besides, for the noise of one measurement: all reads but one stay
within RESIDENT_MAX by themselves."""
KEPT_OF_LARGE_ROWS = 8 << 20
"""The same for an index over rows of 200 kB, whose read has 7 MB counted. The process grows by 4 to
9 MB more than Arrow and Python had at once; eight runs were up to 6.1 MB above RESIDENT_MAX."""
CASES = (
    ("stream", "eight-wide"),
    ("page", "eight-wide"),
    ("page", "many-narrow"),
    ("page", "large-rows"),
    ("page", "in-memory"),
    ("page", "small"),
    ("values", "one-wide"),
    ("index", "indexed"),
    ("index", "indexed-large"),
    ("as_json", "one-narrow"),
    ("get", "eight-wide"),
    ("get", "large-rows"),
    ("get_json", "eight-wide"),
)
SCANS = ("stream", "page", "values", "index")
"""Their reservation has what allocators keep of it, too."""


@pytest.mark.slow
@pytest.mark.parametrize(("read", "shape"), CASES)
def test_given_a_read_when_it_is_answered_then_it_takes_no_more_memory_than_it_reserved(
    read: str, shape: str
) -> None:
    command = [sys.executable, "-m", "tests.dataplane.datanode.regions.held_reads", read, shape]
    given = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=given)

    found = json.loads(done.stdout)

    assert found["taken"] <= TAKEN_MAX * found["counted"], found
    if read in SCANS:
        kept = KEPT_OF_LARGE_ROWS if shape == "indexed-large" else KEPT_BYTES
        assert found["resident"] <= RESIDENT_MAX * found["counted"] + kept, found

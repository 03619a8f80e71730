"""The choice of files to merge: pure decisions on manifests."""

from collections import Counter
from collections.abc import Sequence

import pytest

from dataplane.region.compaction.compaction import (
    FAN_IN,
    FIRST_TIER_BYTES,
    RUNS_MAX,
    RUNS_MIN,
    TIERS,
    compacted,
    plan_compaction,
    tier_of,
)
from dataplane.region.manifests.manifest import FileEntry, Manifest
from tests.dataplane.region.rig import SPEC

KIB = 1 << 10


def entry(number: int, size: int, **facts: object) -> FileEntry:
    made = FileEntry(
        root=None,
        name=f"data/1-1-{number}.parquet",
        bytes=size,
        crc32="0" * 8,
        footer_bytes=1,
        footer_crc32="0" * 8,
        rows=1,
        row_checksum="0" * 16,
        min_key="00",
        max_key="ff",
        min_version=number,
        max_version=number,
    )
    return made.model_copy(update=facts)


def manifest(*files: FileEntry, **facts: object) -> Manifest:
    made = Manifest(
        epoch=1,
        opening=1,
        number=1,
        spec=SPEC,
        schema_floor=0,
        version=1_000,
        sequence=1,
        log_from=1,
        files=files,
    )
    return made.model_copy(update=facts)


def numbers(files: Sequence[FileEntry]) -> list[int]:
    return [file.min_version for file in files]


def test_given_sizes_when_tiered_then_each_tier_is_as_many_times_larger_as_files_are_merged() -> (
    None
):
    assert tier_of(0) == tier_of(FIRST_TIER_BYTES - 1) == 0
    assert tier_of(FIRST_TIER_BYTES) == 1
    assert tier_of(FAN_IN * FIRST_TIER_BYTES) == 2
    assert tier_of(1 << 30) == TIERS


def test_given_few_or_large_or_unequal_files_when_planned_then_nothing_is_merged() -> None:
    few = [entry(number, KIB) for number in range(FAN_IN - 1)]
    large = [entry(number, 2 << 30) for number in range(10)]
    unequal = [entry(number, FIRST_TIER_BYTES * FAN_IN**number) for number in range(6)]

    assert [plan_compaction(manifest(*files)) for files in (few, large, unequal)] == [None] * 3


def test_given_two_tiers_that_are_due_when_planned_then_the_cheaper_oldest_first() -> None:
    small = [entry(number, KIB) for number in range(20, 40)]
    large = [entry(number, 1 << 20) for number in range(10)]

    plan = plan_compaction(manifest(*large, *reversed(small)))

    assert plan is not None
    assert numbers(plan.inputs) == list(range(20, 20 + RUNS_MAX))


def test_given_borrowed_files_when_planned_then_they_are_left_alone() -> None:
    borrowed = [entry(number, KIB, root="/other") for number in range(9)]
    own = [entry(number, KIB) for number in range(10, 10 + FAN_IN)]

    plan = plan_compaction(manifest(*borrowed, *own))

    assert plan is not None
    assert numbers(plan.inputs) == numbers(own)
    assert not plan.drops_tombstones, "what is borrowed may hold older rows of their keys"
    assert plan_compaction(manifest(*borrowed)) is None


@pytest.mark.parametrize(
    ("other", "drops"),
    [
        ({"min_version": 0, "max_version": 0}, False),
        ({"min_version": 99, "max_version": 99}, True),
        ({"min_version": 0, "max_version": 0, "min_key": "0101", "max_key": "02"}, True),
    ],
    ids=["older rows", "newer rows", "other keys"],
)
def test_given_a_file_beside_the_inputs_when_planned_then_tombstones_hide_what_is_older(
    other: dict[str, object], drops: bool
) -> None:
    inputs = [entry(number, KIB, min_key="00", max_key="01") for number in range(1, 1 + FAN_IN)]

    plan = plan_compaction(manifest(*inputs, entry(50, 1 << 20, **other)))

    assert plan is not None
    assert plan.drops_tombstones is drops


FILE_BYTES = 48 << 20
"""Where a run is cut into files."""


@pytest.mark.parametrize(
    "flush_bytes", [KIB, 100 * KIB, pytest.param(8 << 20, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("runs_max", [RUNS_MAX, RUNS_MIN])
def test_given_thousands_of_flushes_when_merged_then_rewriting_and_files_are_bounded(
    flush_bytes: int, runs_max: int
) -> None:
    at, flushed, rewritten = manifest(), 0, 0

    for number in range(1, 4_001):
        at = at.model_copy(update={"files": (*at.files, entry(number, flush_bytes))})
        flushed += flush_bytes
        while (plan := plan_compaction(at, runs_max)) is not None:
            size = sum(file.bytes for file in plan.inputs)
            rewritten += size
            at = compacted(at, plan, run_of(number, size, rewritten)) or at

    assert rewritten <= TIERS * flushed * (FAN_IN // runs_max or 1)
    bytes_by_run: Counter[str] = Counter()
    for file in at.files:
        bytes_by_run[file.run or file.name] += file.bytes
    by_tier = [tier_of(size) for size in bytes_by_run.values()]
    assert all(by_tier.count(tier) < FAN_IN for tier in range(TIERS))


def run_of(number: int, size: int, unique: int) -> list[FileEntry]:
    """The files that a merge writes."""
    sizes = [min(FILE_BYTES, size - start) for start in range(0, size, FILE_BYTES)]
    return [
        entry(number, some, name=f"data/1-1-{number}-{unique}-{at}.parquet")
        for at, some in enumerate(sizes)
    ]

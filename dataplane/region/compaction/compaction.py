"""Chooses the files of a region that are merged, and plans the manifest after it. Pure.

Files of one family only. A *run* is what one merge has written: one file, or several that follow
each other by key, since the footer of a file is bounded (`rewrite`).

Size-tiered (decision 0047): tiers of run sizes rise by `FAN_IN`, and as many runs of one tier are
merged into one of the next. A row is so rewritten at most once for each of `TIERS`, and of each
tier fewer than `FAN_IN` runs stay.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from dataplane.region.manifests.manifest import FileEntry, Manifest

FAN_IN = 4
FIRST_TIER_BYTES = 4 << 10
"""Runs below it, a few rows each, are of tier 0; each further tier is `FAN_IN` times as large."""
TIERS = 10
"""A run of a higher tier, 1 GiB and more, is left as it is."""
RUNS_MAX = 16
"""The most runs of one merge, which holds a window of rows of one file of each."""
RUNS_MIN = 2
"""The fewest: where memory has no room for more."""

Run = tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True)
class Compaction:
    """One merge: own files of one family, since borrowed ones are other nodes' to keep."""

    runs: tuple[Run, ...]
    marks: tuple[int, ...]
    """Row versions as of which somebody still reads."""
    drops_tombstones: bool
    """Whether no older row of their keys is left that tombstones would have to hide."""

    @property
    def inputs(self) -> Run:
        return tuple(chain.from_iterable(self.runs))

    @property
    def family(self) -> int:
        return self.runs[0][0].family


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of one merge."""

    files: int
    bytes_read: int
    bytes_written: int
    """0: no row was left."""


def tier_of(run_bytes: int) -> int:
    tier, above = 0, FIRST_TIER_BYTES
    while run_bytes >= above:
        tier, above = tier + 1, above * FAN_IN
    return tier


def small_files(manifest: Manifest, file_bytes: int) -> int:
    """Own runs below the tier of that size: those that flushes leave and merging has not taken."""
    return sum(tier_of(_bytes_of(run)) < tier_of(file_bytes) for run in _own_runs(manifest))


def plan_compaction(manifest: Manifest, runs_max: int = RUNS_MAX) -> Compaction | None:
    """The cheapest merge that is due, of at most *runs_max* runs; None: none is."""
    tiers: dict[tuple[int, int], list[Run]] = {}
    for run in _own_runs(manifest):
        tiers.setdefault((tier_of(_bytes_of(run)), run[0].family), []).append(run)
    due = [tier for tier, runs in tiers.items() if tier[0] < TIERS and len(runs) >= FAN_IN]
    if not due:
        return None
    oldest_first = sorted(tiers[min(due)], key=lambda run: max(file.max_version for file in run))
    runs = tuple(oldest_first[:runs_max])
    marks = tuple(mark.version for mark in manifest.marks)
    return Compaction(runs, marks, _hide_nothing([*chain.from_iterable(runs)], manifest))


def compacted(
    manifest: Manifest, done: Compaction, outputs: Sequence[FileEntry]
) -> Manifest | None:
    """`manifest` may have gained files since; its number is the caller's. None: the family has died
    meanwhile. No *outputs*: no row was left."""
    if done.family in manifest.dead_indexes:
        return None
    inputs = set(done.inputs)
    assert inputs <= set(manifest.files), "an input has gone meanwhile"
    kept = [entry for entry in manifest.files if entry not in inputs]
    return manifest.model_copy(update={"files": (*kept, *_as_run(outputs))})


def merged(done: Compaction, outputs: Iterable[FileEntry]) -> Merged:
    inputs = done.inputs
    return Merged(len(inputs), _bytes_of(inputs), _bytes_of(outputs))


def _as_run(outputs: Sequence[FileEntry]) -> Sequence[FileEntry]:
    if len(outputs) < 2:
        return outputs
    return [entry.model_copy(update={"run": outputs[0].name}) for entry in outputs]


def _own_runs(manifest: Manifest) -> Iterable[Run]:
    runs: dict[str, Run] = {}
    for entry in manifest.files:
        if entry.root is None:
            name = entry.run or entry.name
            runs[name] = (*runs.get(name, ()), entry)
    return runs.values()


def _bytes_of(files: Iterable[FileEntry]) -> int:
    return sum(entry.bytes for entry in files)


def _hide_nothing(inputs: Sequence[FileEntry], manifest: Manifest) -> bool:
    """Whether every row that is older than a tombstone in *inputs*, of its family and key, is in
    *inputs*.

    What is borrowed comes back as files when it is adopted, sealed logs too. Memory is newer.
    """
    if manifest.borrowed_roots:
        return False
    newest = max(entry.max_version for entry in inputs)
    low = min(bytes.fromhex(entry.min_key) for entry in inputs)
    high = max(bytes.fromhex(entry.max_key) for entry in inputs)
    merged_away = set(inputs)
    return not any(
        other.min_version <= newest
        and bytes.fromhex(other.min_key) <= high
        and bytes.fromhex(other.max_key) >= low
        for other in manifest.files
        if other not in merged_away and other.family == inputs[0].family
    )

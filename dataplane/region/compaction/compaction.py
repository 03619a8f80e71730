"""Chooses the files of a region that are merged into one, and plans the manifest after it. Pure.
Pure.

Files of one family only.

Size-tiered (decision 0047): tiers of file sizes rise by `FAN_IN`, and as many files of one tier are
merged into one of the next. A row is so rewritten at most once for each of `TIERS`, and of each
tier fewer than `FAN_IN` files stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.region.manifests.manifest import FileEntry, Manifest

FAN_IN = 4
FIRST_TIER_BYTES = 4 << 10
"""Files below it, a few rows each, are of tier 0; each further tier is `FAN_IN` times as large."""
TIERS = 10
"""A file of a higher tier, 1 GiB and more, is left as it is."""
INPUTS_MAX = 16
"""The most files of one merge, which holds a window of rows of each."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """One merge: own files of one family, since borrowed ones are other nodes' to keep."""

    inputs: tuple[FileEntry, ...]
    marks: tuple[int, ...]
    """Row versions as of which somebody still reads."""
    drops_tombstones: bool
    """True: no older row of their keys is left that they would have to hide."""

    @property
    def family(self) -> int:
        return self.inputs[0].family


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of one merge."""

    files: int
    bytes_read: int
    bytes_written: int
    """0: no row was left."""


def tier_of(file_bytes: int) -> int:
    tier, above = 0, FIRST_TIER_BYTES
    while file_bytes >= above:
        tier, above = tier + 1, above * FAN_IN
    return tier


def small_files(manifest: Manifest, file_bytes: int) -> int:
    """Own files below the tier of that size: those that flushes leave and merging has not taken."""
    own = (entry for entry in manifest.files if entry.root is None)
    return sum(tier_of(entry.bytes) < tier_of(file_bytes) for entry in own)


def plan_compaction(manifest: Manifest) -> Compaction | None:
    """The cheapest merge that is due; None: none is."""
    own = [entry for entry in manifest.files if entry.root is None]
    if len(own) < FAN_IN:
        return None
    tiers: dict[tuple[int, int], list[FileEntry]] = {}
    for entry in own:
        tiers.setdefault((tier_of(entry.bytes), entry.family), []).append(entry)
    due = [tier for tier, files in tiers.items() if tier[0] < TIERS and len(files) >= FAN_IN]
    if not due:
        return None
    oldest_first = sorted(tiers[min(due)], key=lambda entry: entry.max_version)
    inputs = tuple(oldest_first[:INPUTS_MAX])
    marks = tuple(mark.version for mark in manifest.marks)
    return Compaction(inputs, marks, _hide_nothing(inputs, manifest))


def compacted(manifest: Manifest, done: Compaction, output: FileEntry | None) -> Manifest | None:
    """`manifest` may have gained files since; its number is the caller's. None: the family has died
    meanwhile. No `output`: no row was left."""
    if done.family in manifest.dead_indexes:
        return None
    assert set(done.inputs) <= set(manifest.files), "an input has gone meanwhile"
    kept = tuple(entry for entry in manifest.files if entry not in done.inputs)
    return manifest.model_copy(update={"files": kept if output is None else (*kept, output)})


def merged(done: Compaction, output: FileEntry | None) -> Merged:
    read = sum(entry.bytes for entry in done.inputs)
    return Merged(len(done.inputs), read, 0 if output is None else output.bytes)


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
    return not any(
        other.min_version <= newest
        and bytes.fromhex(other.min_key) <= high
        and bytes.fromhex(other.max_key) >= low
        for other in manifest.files
        if other not in inputs and other.family == inputs[0].family
    )

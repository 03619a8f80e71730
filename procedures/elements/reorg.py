"""Progress of filling one index, over the regions of its table. Stored; pure.

A region is *pending*, then *read* (a job has made files of entries of its rows, as of the mark),
then *filled* (its leader has taken them). The record of a table of a thousand regions must stay
small: of what is filled only numbers are kept, in runs; of what is read the files, and those are of
one round. A crash begins the rounds that are not in the record anew, under other names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from keys.model.tables import RegionRoute
from keys.value import StoredPart
from metasrv_base.wire.node.offenders import first_within

OFFENDERS_MAX = 100
"""Kept and shown; the others are only counted. A record is rewritten with every step."""
OFFENDERS_CHARS_MAX = 16_384
"""Limit of the offenders that are kept, in characters of JSON: a key may take KiB, and the
record, the error and the result of a procedure hold them."""
PACES_MAX = 4
"""Rounds that a rate is measured over: what was true an hour ago says little of the next one."""

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Numbers as runs, first and last of each; ascending, and never adjacent."""


class BuiltFiles(StoredPart):
    """Files of entries that a job has made of one region's rows, until its leader takes them."""

    region: int
    """Number of the region."""
    epoch: int
    """Epoch of the leader that read the rows; the files are in its root."""
    attempt: str
    """Folder of the files, relative to that root."""
    files: tuple[dict[str, object], ...]
    """Files in the form of `metasrv_base.wire.node.orders.DataFile`."""
    rows: int
    """Rows from which the entries were made."""
    entries: int
    bytes: int


class Offender(StoredPart):
    """Values that a unique index would have twice, and some of the rows that have them."""

    values: tuple[object, ...]
    """JSON forms, in the order of the index."""
    rows: tuple[tuple[object, ...], ...]
    """Primary keys, as JSON."""


class RoundPace(StoredPart):
    """The rows and the duration of one round."""

    rows: int
    ms: int


class IndexReorg(StoredPart):
    """Progress of filling one index of one table."""

    index: int
    has_marks: bool = False
    """Whether any region had rows, and so a mark."""
    filled: Runs = ()
    """Numbers of the regions that have an entry for every row."""
    violated: Runs = ()
    """Numbers of the regions with duplicate values of a unique index; they have taken no files."""
    made: tuple[BuiltFiles, ...] = ()
    rounds: int = 0
    """Rounds of jobs that are over."""
    refusals: int = 0
    """Rounds in a row of which no region took anything."""
    rows_total: int = 0
    """Estimate of all rows, from the regions' files when the marks were opened."""
    rows: int = 0
    """Rows whose entries have been taken."""
    entries: int = 0
    bytes: int = 0
    duplicates: int = 0
    """Values of a unique index that more than one row has."""
    offenders: tuple[Offender, ...] = ()
    p99_before_ms: float | None = None
    """The p99 of statements at the frontends when it began, in ms; None: there were none."""
    read_ms: int = 0
    """Time for which its rounds have read, in ms."""
    paces: tuple[RoundPace, ...] = ()
    """Pace of the last rounds, oldest first."""


class ReorgStage(StrEnum):
    """The stage of one region, for people."""

    PENDING = "pending"
    READ = "read"
    FILLED = "filled"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class Taken:
    """A region's answer when it took the files of one round."""

    made: BuiltFiles
    duplicates: int = 0
    offenders: tuple[Offender, ...] = ()


# What is next -------------------------------------------------------------------------------------


def pending(reorg: IndexReorg, regions: Sequence[RegionRoute]) -> tuple[RegionRoute, ...]:
    """Regions whose rows are to be read: those of which nothing is known yet."""
    return tuple(
        region for region in regions if stage_of(reorg, region.number) is ReorgStage.PENDING
    )


def in_turn(
    reorg: IndexReorg, waiting: Sequence[RegionRoute], width: int
) -> tuple[RegionRoute, ...]:
    """Returns the regions in the order in which rounds of *width* read them. Regions that the
    last round began with and that were not taken come last."""
    first = reorg.rounds * width % max(1, len(waiting))
    return (*waiting[first:], *waiting[:first])


def stage_of(reorg: IndexReorg, number: int) -> ReorgStage:
    if has(reorg.filled, number):
        return ReorgStage.FILLED
    if has(reorg.violated, number):
        return ReorgStage.VIOLATED
    is_made = any(files.region == number for files in reorg.made)
    return ReorgStage.READ if is_made else ReorgStage.PENDING


def summary(reorg: IndexReorg) -> dict[str, object]:
    """Returns the facts of a reorg for the history."""
    facts: dict[str, object] = {
        "rows": reorg.rows,
        "entries": reorg.entries,
        "bytes": reorg.bytes,
        "rounds": reorg.rounds,
        "read_ms": reorg.read_ms,
    }
    if reorg.duplicates:
        facts["duplicates"] = reorg.duplicates
        facts["offenders"] = [offender.model_dump(mode="json") for offender in reorg.offenders]
    return facts


# What became of a round ---------------------------------------------------------------------------


def surveyed(index: int, regions: Sequence[RegionRoute], rows: Mapping[str, int]) -> IndexReorg:
    """The marks are open. *rows*: of the regions that have one, by region id, an estimate; the
    others have nothing to fill."""
    filled: Runs = ()
    for region in regions:
        if not rows.get(region.region_id):
            filled = joined(filled, region.number)
    return IndexReorg(
        index=index, has_marks=bool(rows), filled=filled, rows_total=sum(rows.values())
    )


def with_made(reorg: IndexReorg, made: Sequence[BuiltFiles], read_ms: int) -> IndexReorg:
    """Jobs have ended. The next ones are of another round, whatever becomes of these."""
    pace = RoundPace(rows=sum(files.rows for files in made), ms=read_ms)
    return reorg.model_copy(
        update={
            "made": (*reorg.made, *made),
            "rounds": reorg.rounds + 1,
            "read_ms": reorg.read_ms + read_ms,
            "paces": (*reorg.paces, pace)[-PACES_MAX:],
        }
    )


def rate_per_s(reorg: IndexReorg, now: RoundPace) -> float | None:
    """Returns the rate in rows/s over the last rounds and the current one. None: nothing has
    been read."""
    paces = (*reorg.paces, now)
    ms = sum(past.ms for past in paces)
    return sum(past.rows for past in paces) * 1000 / ms if ms else None


def with_taken(reorg: IndexReorg, taken: Sequence[Taken]) -> IndexReorg:
    """Records the answers to one round. Files that no region took (its leader changed, or
    refused) are dropped and their regions are pending again."""
    filled, violated, offenders = reorg.filled, reorg.violated, list(reorg.offenders)
    had: list[BuiltFiles] = []
    for answer in taken:
        assert answer.made in reorg.made, "an answer to an attempt that the record does not know"
        if answer.duplicates:
            violated = joined(violated, answer.made.region)
        else:
            filled = joined(filled, answer.made.region)
            had.append(answer.made)
        offenders += answer.offenders
    return reorg.model_copy(
        update={
            "filled": filled,
            "violated": violated,
            "made": (),
            "refusals": 0 if taken else reorg.refusals + 1,
            "rows": reorg.rows + sum(files.rows for files in had),
            "entries": reorg.entries + sum(files.entries for files in had),
            "bytes": reorg.bytes + sum(files.bytes for files in had),
            "duplicates": reorg.duplicates + sum(answer.duplicates for answer in taken),
            "offenders": tuple(first_within(offenders[:OFFENDERS_MAX], OFFENDERS_CHARS_MAX)),
        }
    )


# Numbers in runs ----------------------------------------------------------------------------------


def has(runs: Runs, number: int) -> bool:
    return any(first <= number <= last for first, last in runs)


def joined(runs: Runs, number: int) -> Runs:
    """*runs* and *number*."""
    if has(runs, number):
        return runs
    below = [run for run in runs if run[1] < number]
    above = [run for run in runs if run[0] > number]
    first = last = number
    if below and below[-1][1] == number - 1:
        first, _ = below.pop()
    if above and above[0][0] == number + 1:
        _, last = above.pop(0)
    return (*below, (first, last), *above)

"""Planted bugs of what a change of schema asks of a region: any writers beside a job find each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dataplane.region.compaction import rewrite
from dataplane.region.engine import content, reading, writer
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import VERSION
from dataplane.region.format.names import attempt_of
from metasrv_base.errors import MetaError
from tests.dataplane.region.engine import test_file_ingest as test_ingest
from tests.dataplane.region.engine import test_region_model_families as test_model_families
from tests.dataplane.region.indexes import test_unique_recheck

pytestmark = pytest.mark.crash
RUNS = 60
LATER = 1_000_000  # versions that no writer of a run comes to


SCAN = FileReader.scan
WITHOUT_TOMBSTONES = rewrite._without_tombstones


def scan_as_newest(self: FileReader, *asked: Any) -> Iterator[pa.Table]:
    """Takes rows that a job has brought for newer than those written since."""
    for table in SCAN(self, *asked):
        place = table.schema.get_field_index(VERSION)
        later = pc.add(table.column(VERSION), pa.scalar(LATER, pa.int64()))
        is_jobs = attempt_of(self.entry.name) is not None
        yield table.set_column(place, table.schema.field(place), later) if is_jobs else table


def tombstones_dropped(rows: pa.Table, up_to: int | None) -> pa.Table:
    """A merge that does not look whether somebody reads as of a mark."""
    return WITHOUT_TOMBSTONES(rows, None)


def any_version(*_: object) -> None:
    """A floor is told, kept, and not looked at."""


@dataclass(frozen=True)
class Histories:
    """A test of any history, and what it draws."""

    test: Any
    drawn: Mapping[str, st.SearchStrategy[Any]]

    def hunt(self, runs: list[object]) -> None:
        """Without a search for a shorter one. Each run is noted."""
        inner = self.test.hypothesis.inner_test

        @wraps(inner)
        def noted(**history: object) -> None:
            runs.append(history)
            inner(**history)

        lived = settings(max_examples=RUNS, phases=[Phase.generate], report_multiple_bugs=False)
        lived(given(**self.drawn)(noted))()


BESIDE_A_BACKFILL = Histories(
    test_ingest.test_given_writers_before_during_and_behind_a_backfill_then_the_index_is_that_of_the_rows,
    dict.fromkeys(["before", "during", "behind"], test_ingest.WRITES),
)
BESIDE_A_UNIQUE_ONE = Histories(
    test_unique_recheck.test_given_writers_at_any_time_when_a_unique_index_is_ingested_then_it_is_that_of_the_rows,
    dict.fromkeys(["before", "during", "prepared", "behind"], test_unique_recheck.DEEDS),
)
WITH_FLOORS = Histories(
    test_model_families.test_given_any_history_with_indexes_when_read_then_each_family_holds_what_a_dict_would,
    {
        "history": st.lists(test_model_families.ACTIONS, max_size=25),
        "tombstones_min": test_model_families.TOMBSTONES_MIN,
    },
)
Plant = tuple[tuple[tuple[object, str, object], ...], Histories]
PLANTED: dict[str, Plant] = {
    "backfill overwrites newer": (((FileReader, "scan", scan_as_newest),), BESIDE_A_BACKFILL),
    "tombstone dropped during a reorg": (
        ((rewrite, "_without_tombstones", tombstones_dropped),),
        BESIDE_A_UNIQUE_ONE,
    ),
    "floor not looked at": (
        tuple((module, "check_floor", any_version) for module in (content, reading, writer)),
        WITH_FLOORS,
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_histories_are_drawn_then_one_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    patches, histories = PLANTED[bug]
    runs: list[object] = []
    for patch in patches:
        monkeypatch.setattr(*patch)

    with pytest.raises((AssertionError, MetaError)) as caught:
        histories.hunt(runs)

    with capsys.disabled():
        said = " ".join(str(caught.value).split())[:120]
        print(f"\n{bug}: run {len(runs)}: {caught.typename}: {said}", end="")

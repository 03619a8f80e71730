"""The stored texts of a region's root: fence, manifest, names. Old ones must stay readable."""

import zlib
from pathlib import Path

import pytest

from dataplane.region.format.columns import ColumnDef, RegionOriginColumn
from dataplane.region.format.names import (
    Numbered,
    Opening,
    attempt_of,
    data_name,
    fence_name,
    fences,
    is_data_file,
    manifest_name,
    manifests,
    segment_name,
    segments,
)
from dataplane.region.manifests.fence import FenceContent
from dataplane.region.manifests.manifest import (
    Decoded,
    FileEntry,
    ListedStatement,
    Manifest,
    Mark,
    SealedEntry,
    StatementFile,
    StoredPosition,
    decode_manifest,
    encode_manifest,
)
from metasrv_base.errors import Corrupt
from tests.dataplane.region.rig import REGION_ID, SPEC, A

GOLDEN = Path(__file__).parents[3] / "golden" / "region"
FENCE = FenceContent(region_id=REGION_ID, epoch=3, opening=2, root=A, created_ms=1_700_000_000_000)
REPLACED = ColumnDef(
    id=5,
    type="string",
    nullable=True,
    origin_default="7",
    origin_columns=(RegionOriginColumn(id=4, type="int64"), RegionOriginColumn(id=3, type="int32")),
)
MANIFEST = Manifest(
    epoch=3,
    opening=2,
    number=7,
    spec=SPEC.model_copy(update={"columns": (*SPEC.columns, REPLACED)}),
    schema_floor=4,
    version=1_782_580_248_576_000_000,
    sequence=99,
    log_from=5,
    files=(
        FileEntry(
            root=None,
            name="data/3-2-1.parquet",
            family=2,
            bytes=1234,
            crc32="00c0ffee",
            footer_bytes=34,
            footer_crc32="0badcafe",
            rows=10,
            row_checksum="00000000deadbeef",
            min_key="00",
            max_key="ff00",
            min_version=1 << 20,
            max_version=2 << 20,
            run="data/3-2-1.parquet",
            decoded=Decoded(row_groups=3, bytes=4321, largest=2000),
        ),
    ),
    sealed=(
        SealedEntry(
            root="/disk/z", name="wal-1-1-2", bytes=44, crc32="01234567", rows=0, covered=True
        ),
    ),
    adopted=("0191f2c4-0000-7000-8000-000000000000",),
    statement_files=(StatementFile(name="ids-3-2-1", bytes=44, crc32="76543210"),),
    forgotten_ms=1_700_000_000_000,
    marks=(Mark(name="freeze-7", version=1 << 20),),
    schema_version=5,
    indexes=(2, 3),
    dead_indexes=(1,),
    floor_version=3 << 20,
    in_files=StoredPosition(epoch=3, sequence=97),
)
WITHOUT_RUNS = tuple(
    file.model_copy(update={"run": None, "decoded": None}) for file in MANIFEST.files
)
LISTED = {
    "files": WITHOUT_RUNS,
    "statements": (ListedStatement(statement_id="s-1", version=2 << 20, rows=10),),
    "statement_files": (),
    "forgotten_ms": 0,
    "in_files": None,
}
"""Statements as older manifests name them."""


def test_given_a_manifest_when_written_today_then_it_is_the_golden_file() -> None:
    assert encode_manifest(MANIFEST) == (GOLDEN / "manifest.txt").read_bytes()


def test_given_the_golden_manifest_when_read_then_it_is_understood() -> None:
    assert decode_manifest((GOLDEN / "manifest.txt").read_bytes(), "golden") == MANIFEST


def test_given_a_manifest_of_before_runs_when_read_then_each_file_is_one_of_unknown_size() -> None:
    found = decode_manifest((GOLDEN / "manifest_without_runs.txt").read_bytes(), "golden")

    assert found == MANIFEST.model_copy(update={"files": WITHOUT_RUNS, "in_files": None})


def test_given_a_manifest_of_before_positions_when_read_then_that_of_its_files_is_not_known() -> (
    None
):
    found = decode_manifest((GOLDEN / "manifest_without_positions.txt").read_bytes(), "golden")

    assert found == MANIFEST.model_copy(update={"in_files": None})


def test_given_a_manifest_of_before_families_when_read_then_it_has_rows_alone() -> None:
    found = decode_manifest((GOLDEN / "manifest_without_families.txt").read_bytes(), "golden")

    (file,) = WITHOUT_RUNS
    plain = {**LISTED, "schema_version": 0, "indexes": (), "dead_indexes": (), "floor_version": 0}
    plain["spec"] = SPEC
    plain["files"] = (file.model_copy(update={"family": 0}),)
    assert found == MANIFEST.model_copy(update=plain)


def test_given_a_manifest_that_lists_statements_when_read_then_it_is_understood() -> None:
    found = decode_manifest((GOLDEN / "manifest_with_statements.txt").read_bytes(), "golden")

    assert found == MANIFEST.model_copy(update=LISTED)


def test_given_a_manifest_of_before_types_changed_when_read_then_its_columns_replace_none() -> None:
    found = decode_manifest((GOLDEN / "manifest_without_origin_columns.txt").read_bytes(), "golden")

    assert found == MANIFEST.model_copy(update={**LISTED, "spec": SPEC})


def test_given_a_fence_when_written_today_then_it_is_the_golden_file() -> None:
    assert FENCE.model_dump_json().encode() == (GOLDEN / "fence.json").read_bytes()


def test_given_a_manifest_when_any_byte_is_changed_or_cut_then_it_is_corrupt() -> None:
    data = encode_manifest(MANIFEST)

    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises(Corrupt):
            decode_manifest(bytes(changed), "here")
        with pytest.raises(Corrupt):
            decode_manifest(data[:at], "here")


def test_given_a_manifest_when_it_has_a_field_we_do_not_know_then_it_is_corrupt() -> None:
    line = encode_manifest(MANIFEST).split(b"\n")[0].replace(b'"format":1', b'"format":2')

    with pytest.raises(Corrupt):
        decode_manifest(line + b"\n%08x\n" % zlib.crc32(line), "here")


def test_given_names_when_made_then_they_parse_back_and_order_by_number() -> None:
    numbers = [Numbered(1, 1, 9), Numbered(1, 2, 1), Numbered(1, 10, 1), Numbered(2, 1, 1)]
    openings = [Opening(1, 9), Opening(1, 10), Opening(2, 1)]

    assert manifests(reversed([manifest_name(number) for number in numbers])) == numbers
    assert segments(reversed([segment_name(number) for number in numbers])) == numbers
    assert fences(reversed([fence_name(opening) for opening in openings])) == openings
    assert data_name(numbers[0]) == "data/1-1-9.parquet"


@pytest.mark.parametrize(
    "name",
    [
        "fence-01-1",
        "fence-1-0",
        "fence-1-1 ",
        "fence-1-1\n",
        "fence--1-1",
        "fence-1-1-1",
        "manifest-1-1-1.tmp",
        "manifest-1-1",
        "wal-1-1-٣",
        "wal-1-1-1~",
        "xwal-1-1-1",
        "wal-1-1-12345678901234567890",
    ],
)
def test_given_a_name_that_we_do_not_write_when_parsed_then_it_is_not_ours(name: str) -> None:
    assert fences([name]) == []
    assert manifests([name]) == []
    assert segments([name]) == []


@pytest.mark.parametrize(
    "name",
    ["attempts/../a.parquet", "attempts/a/../b.parquet", "attempts/a/b", "/attempts/a/b.parquet"],
)
def test_given_a_path_that_leaves_its_folder_when_parsed_then_it_is_no_attempts(name: str) -> None:
    assert attempt_of(name) is None
    assert not is_data_file(name)

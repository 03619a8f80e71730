"""The fields of a region's schema reach every file that is written: nobody leaves one out.

Each set names what one class has on purpose and the others have not. A new field fails here until
it is carried everywhere, or named.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields

from dataplane.region.files.file_writer import FileTarget
from dataplane.region.format.columns import RegionSpec
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.manifest import Manifest
from dataplane.region.place import OpenOrder
from metasrv.host.toolchain import checkout

PLACE = {"disk", "root", "name"}
BATCHES = {"version", "floor", "indexes", "dead"}
"""They say which batches and reads a region takes, and nothing about a file."""
STORED_AS = {
    "version": "schema_version",
    "floor": "schema_floor",
    "dead": "dead_indexes",
    "columns": "spec",
}
"""Fields of a schema under their names in a manifest."""
ORDERED_AS = {**STORED_AS, "columns": "columns"}
TAKEOVER = {"region_id", "epoch", "borrows", "unannounced"}
ROWS_ALONE = {("dataplane/pipelines/jobs/load_sorted.py", "family")}
"""An import writes rows: its table has no indexes."""


def names(of: type) -> set[str]:
    return {field.name for field in fields(of)}


def test_given_what_a_region_knows_of_its_table_then_its_manifest_and_its_orders_have_it() -> None:
    known = names(RegionSchema)

    assert {STORED_AS.get(name, name) for name in known} <= set(Manifest.model_fields)
    assert {ORDERED_AS.get(name, name) for name in known} == names(OpenOrder) - TAKEOVER
    assert set(RegionSpec.model_fields) - {"region_id", "engine"} == {
        ORDERED_AS.get(name, name) for name in known - {"dead"}
    }


def test_given_what_a_region_knows_of_its_table_then_who_writes_its_files_is_told() -> None:
    assert names(FileTarget) - PLACE - {"family"} == names(RegionSchema) - BATCHES


def test_given_a_file_that_is_written_then_no_part_of_its_target_is_left_to_a_default() -> None:
    left_out = {
        (file, name) for file, call in _targets() for name in names(FileTarget) - _given(call)
    }

    assert left_out == ROWS_ALONE


def _targets() -> Iterator[tuple[str, ast.Call]]:
    """Calls that make a target, in the product, each with its file."""
    for path in sorted((checkout() / "dataplane").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == FileTarget.__name__:
                yield str(path.relative_to(checkout())), node


def _given(call: ast.Call) -> set[str]:
    by_place = [field.name for field in fields(FileTarget)][: len(call.args)]
    return {*by_place, *(keyword.arg for keyword in call.keywords if keyword.arg)}

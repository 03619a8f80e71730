"""A bulk load of files into a table: what is asked, and what came of it."""

from typing import Annotated

from pydantic import Field

from metasrv_base.wire.model import Int64, Listed, WireModel

PATHS_MAX = 256
PATH_CHARS_MAX = 4096


class ImportRequest(WireModel):
    paths: Listed[Annotated[str, Field(max_length=PATH_CHARS_MAX, pattern=r"^/[^\x00]*$")]] = Field(
        min_length=1, max_length=PATHS_MAX
    )
    """Absolute, as the executors of Spark see them: Parquet files, or folders of such. They must
    stay as they are until the answer."""


class ImportBody(WireModel):
    table_id: Int64
    name: str
    rows: Int64
    """Rows in the files; each is in the table, or was overwritten by a concurrent statement."""
    files: Int64
    bytes: Int64
    """Size of the files in bytes."""
    regions: Int64
    """Regions that received rows."""

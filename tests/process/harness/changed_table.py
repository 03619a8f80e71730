"""Conditions on a table that changed under writers: its rows, new columns and indexes."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from metasrv_base.wire.node.batches import ChecksumRequest
from tests.process.harness.rig import Rig, Spec
from tests.process.harness.row_writer import RowWriter

FIRST = 1_000_000
PAGE_ROWS = "10000"
PAGE_S = 60.0


@dataclass(slots=True)
class Kept:
    """A column that stays: its first default, then its last, and when that was asked and told."""

    name: str
    default: int
    added_ms: tuple[int, int]
    changed_ms: tuple[int, int]

    @property
    def last(self) -> int:
        return FIRST + self.default


@dataclass(frozen=True, slots=True)
class Reader:
    rig: Rig
    url: str
    """URL of the table, at a frontend."""
    table: str
    """At a metasrv."""

    async def rows(self, path: str, **query: str) -> list[dict[str, Any]]:
        """All pages."""
        query |= {"apart": "true", "limit": PAGE_ROWS}
        found: list[dict[str, Any]] = []
        while True:
            page = await self.rig.until(partial(self._page, path, query))
            found += page["rows"]
            if "next_page_token" not in page:
                return found
            query["page_token"] = page["next_page_token"]

    async def entries(self, index: str) -> int:
        """Returns the number of stored entries, those without a row included, as the regions count
        them."""
        table = await self.rig.told(self.table)
        (id,) = [one["id"] for one in table["indexes"] if one["name"] == index]
        counts = [
            await self.rig.until(partial(self._counted, table, region, id))
            for region in table["regions"]
        ]
        return sum(count["rows"] for count in counts)

    async def _counted(self, table: Spec, region: Mapping[str, Any], index: int) -> Any:
        """None: not now."""
        wanted = ChecksumRequest(
            table_id=table["id"],
            schema_version=table["schema_version"],
            epoch=region["epoch"],
            index=index,
        )
        url = f"{region['address']}/node/v1/regions/{region['region_id']}/checksum"
        answer = await self.rig.http.post(url, json=wanted.model_dump(), timeout=PAGE_S)
        return answer.json() if answer.status_code == httpx.codes.OK else None

    async def _page(self, path: str, query: Mapping[str, str]) -> Any:
        """None for 503: it is asked again. Any other refusal is a fault."""
        answer = await self.rig.http.get(self.url + path, params=query, timeout=PAGE_S)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            return None
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()


def wrong_of_columns(
    rows: Sequence[Mapping[str, Any]], kept: Sequence[Kept], writers: Sequence[RowWriter]
) -> Iterator[str]:
    """Rows from before a column have its first default, those from after a change its second."""
    known = {id: row for writer in writers for id, row in writer.rows.items()}
    for column in kept:
        for row in rows:
            written = known[row["id"]]
            allowed = {column.default, column.last}
            if written.told_ms is not None and written.told_ms < column.added_ms[0]:
                allowed = {column.default}
            if written.asked_ms > column.changed_ms[1]:
                allowed = {column.last}
            if row[column.name] not in allowed:
                yield f"row {row['id']}: {column.name} is {row[column.name]}, not of {allowed}"


async def wrong_of_indexes(
    reader: Reader, rows: Sequence[Mapping[str, Any]], indexes: Mapping[str, str]
) -> AsyncIterator[str]:
    """*indexes*: names, with their column. Read from end to end, each has every row once, in its
    order; and no entry beside."""
    for name, column in indexes.items():
        first = '""' if column == "word" else "0"
        by_index = await reader.rows("/rows", **{"index": name, "from": first})
        by_row = sorted(rows, key=lambda row: (row[column], row["id"]))
        if by_index != by_row:
            yield f"{name} has {len(by_index)} rows that are not the table's {len(by_row)}"
        if (count := await reader.entries(name)) != len(rows):
            yield f"{name} has {count} entries of {len(rows)} rows"

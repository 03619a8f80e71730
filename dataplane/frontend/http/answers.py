"""The answers of a frontend: pages of rows as JSON, NDJSON or Arrow, and its version. Pure."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import orjson
import pyarrow as pa
from fastapi import Response

from dataplane.frontend.statements.reads import PageOf
from metasrv_base.concurrency.reservations import Reservations
from metasrv_base.rows.arrow_parts import ArrowParts
from metasrv_base.rows.convert import to_json_rows
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.wire.frontend.rows import SCHEMA_VERSION, SCHEMA_VERSION_KEY
from metasrv_base.wire.model import WireModel
from serving.timed_stream import SMALL_BYTES, whole_answer


class MediaType(StrEnum):
    """Media types."""

    JSON = "application/json"
    LINES = "application/x-ndjson"
    ARROW = "application/vnd.apache.arrow.stream"


class Alive(WireModel):
    status: str = "ok"


class VersionBody(WireModel):
    name: str = "frontend"
    version: str
    frontend_id: str
    incarnation: str | None
    """The incarnation; None before the frontend has registered."""
    cluster_id: str | None
    catalog_version: int | None
    """The version of the catalog; None if nothing was read yet."""


def wanted_form(accept: str) -> MediaType:
    """The first form of ours that a client names; JSON if it names none."""
    named = [part.partition(";")[0].strip() for part in accept.split(",")]
    return next((MediaType(form) for form in named if form in set(MediaType)), MediaType.JSON)


def page_answer(page: PageOf, form: MediaType, room: Reservations) -> Response:
    """Holds as much of *room* as the answer has, until its reader has received it; a small one,
    which its connection buffers anyway, holds nothing. Raises Unavailable."""
    body, headers = _page_body(page, form)
    held = room.hold(len(body) if len(body) > SMALL_BYTES else 0)
    return whole_answer(body, form, held.release, headers)


def _page_body(page: PageOf, form: MediaType) -> tuple[bytes, dict[str, str]]:
    headers = {SCHEMA_VERSION: str(page.schema_version)}
    if form is MediaType.JSON:
        body = {
            "rows": to_json_rows(page.columns, page.rows),
            "schema_version": page.schema_version,
        }
        if page.next_page_token is not None:
            body["next_page_token"] = page.next_page_token
        return orjson.dumps(body), headers
    if page.next_page_token is not None:
        headers["x-next-page-token"] = page.next_page_token
    if form is MediaType.LINES:
        return lines(page), headers
    stream = ArrowParts(arrow_schema(page.columns, page.schema_version))
    return b"".join([*arrow_parts(stream, page), stream.end()]), headers


def lines(page: PageOf) -> bytes:
    """One row a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in to_json_rows(page.columns, page.rows))


def arrow_schema(columns: Sequence[LayoutColumn], schema_version: int) -> pa.Schema:
    metadata = {SCHEMA_VERSION_KEY: str(schema_version).encode()}
    return Layout.arrow_of(columns).with_metadata(metadata)


def arrow_parts(stream: ArrowParts, page: PageOf) -> Iterator[bytes]:
    """The messages of a page, each made when the one before has been taken."""
    rows = page.rows.replace_schema_metadata(None)
    return map(stream.part, rows.to_batches() if isinstance(rows, pa.Table) else [rows])

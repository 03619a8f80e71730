"""The origin of an update: principal and statement, bounded, whatever was sent."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.log import CatalogUpdate
from keys.model.origin import STATEMENT_BYTES_MAX, Origin
from keys.model.records import ClientRequirements, ProcedureRecord
from keys.value import decode, encode
from tests.keys.model.samples import RECORD

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
GOLDEN_1 = (
    b'{"format":1,"version":2,"at_ms":5,"procedure":null,'
    b'"entries":[{"op":"table.purged","table_id":1024}]}'
)


def record(body: object, **more: object) -> ProcedureRecord:
    statement = {"method": "POST", "path": "/v1/x", "body": body}
    client = ClientRequirements(submitted_by="anna", request_id="r-1", statement=statement)
    fresh = {"client": client, "catalog_version": None, "parent": None}
    return RECORD.model_copy(update={**fresh, **more})


@given(body=JSON)
def test_given_any_statement_then_it_is_kept_whole_or_its_beginning_with_its_digest(
    body: object,
) -> None:
    sent = record(body)
    whole = json.dumps(sent.client.statement, separators=(",", ":"), ensure_ascii=False)
    raw = whole.encode(errors="replace")

    origin = Origin.of(sent)

    assert origin.statement is not None
    kept = origin.statement.encode()
    assert len(kept) <= STATEMENT_BYTES_MAX
    assert raw.startswith(kept)
    assert (origin.cut is None) == (kept == raw)


def test_given_a_long_statement_then_4096_bytes_its_length_and_its_digest_are_kept() -> None:
    sent = record({"comment": "\u00e9" * 100_000})
    raw = json.dumps(sent.client.statement, separators=(",", ":"), ensure_ascii=False).encode()

    origin = Origin.of(sent)

    assert origin.statement is not None
    assert STATEMENT_BYTES_MAX - 1 <= len(origin.statement.encode()) <= STATEMENT_BYTES_MAX
    assert origin.cut is not None
    assert (origin.cut.bytes, origin.cut.sha256) == (len(raw), sha256(raw).hexdigest())


def test_given_a_later_update_of_a_procedure_then_the_statement_is_not_kept_again() -> None:
    origin = Origin.of(record({}, catalog_version=7))

    assert (origin.by, origin.request_id, origin.statement) == ("anna", "r-1", None)


def test_given_a_child_then_its_updates_name_its_parent() -> None:
    assert Origin.of(record({}, parent="p-1")).parent == "p-1"
    assert Origin.of(record({}, parent="p-1", catalog_version=7)).parent == "p-1"


@pytest.mark.case("catalog 115")
def test_given_an_update_of_the_format_before_then_it_is_read_and_nobody_is_named() -> None:
    update = decode(CatalogUpdate, GOLDEN_1, key="__catalog/update/2")

    assert (update.version, update.origin) == (2, None)
    assert decode(CatalogUpdate, encode(update), key="x") == update

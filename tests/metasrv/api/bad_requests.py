"""Wrong requests of clients: rows of scripts/documents/input_cases.py, by their numbers.

Where two rows share a number they are two cases of it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from tests.metasrv.api.raw import JSON, Sent
from tests.metasrv.api.rig import TABLES, spec


class Row(NamedTuple):
    """A request, and the answer it must get."""

    number: int
    what: str
    sent: Sent
    status: int
    code: str


def body(raw: bytes, **more: Any) -> Sent:
    return Sent(**{"parts": (raw,), **more})


def table(**changes: Any) -> Sent:
    """A create that is right but for *changes*."""
    return body(orjson.dumps({**spec(), **changes}))


def named(name: str) -> Sent:
    return table(name=name)


def columns(*found: dict[str, Any], **more: Any) -> Sent:
    return table(columns=list(found), **more)


def get(path: str) -> Sent:
    return Sent("GET", path, {}, ())


def by_hash(count: Any) -> dict[str, Any]:
    return {"by": "hash", "columns": ["id"], "count": count}


def by_range(*bounds: list[Any]) -> dict[str, Any]:
    return {"by": "range", "columns": ["id"], "bounds": list(bounds)}


ID = {"name": "id", "type": "int64", "nullable": False}
REGION = str(999 << 32)
GOOD = orjson.dumps(spec())


def rows() -> Iterator[Row]:
    yield from _bodies()
    yield from _numbers()
    yield from _envelopes()
    yield from _names()
    yield from _paths()
    yield from _specs()
    yield from _states()
    yield from _changes()
    yield from _lists()
    yield from _others()


def _bodies() -> Iterator[Row]:
    deep = b"[" * 200_000
    for number, what, raw in (
        (1, "empty body", b""),
        (4, "truncated", GOOD[:-5]),
        (5, "trailing garbage", GOOD + b"xx"),
        (6, "a key twice", GOOD[:-1] + b',"name":"u"}'),
        (8, "nested", deep),
        (9, "invalid UTF-8", b'{"name":"\xff\xfe"}'),
        (10, "byte order mark", b"\xef\xbb\xbf" + GOOD),
        (11, "half a surrogate pair", b'{"name":"\\ud800"}'),
        (12, "NaN", b'{"name":NaN}'),
        (12, "Infinity", b'{"name":-Infinity}'),
        (13, "1e999", b'{"name":1e999}'),
        (14, "an integer of 5,000 digits", b'{"name":' + b"9" * 5000 + b"}"),
    ):
        yield Row(number, what, body(raw), 400, "malformed-json")
    yield Row(2, "null", body(b"null"), 422, "invalid-request")
    yield Row(3, "an array", body(b"[]"), 422, "invalid-request")
    yield Row(7, "an unknown field", table(colums=1), 422, "invalid-request")


def _numbers() -> Iterator[Row]:
    default = {"name": "n", "type": "int64", "default": 2**63}
    yield Row(15, "2^63 as int64", columns(ID, default), 422, "invalid-request")
    yield Row(15, "2^63 as a count", table(replicas=2**63), 422, "invalid-request")
    for number, what, value in (
        (16, "true as a number", True),
        (17, "a number in quotes", "1"),
        (18, "1.0 as an integer", 1.0),
    ):
        yield Row(number, what, table(replicas=value), 422, "invalid-request")
        yield Row(number, what, table(partition=by_hash(value)), 422, "invalid-request")
    for count in (-1, 0, 10**6):
        yield Row(19, "partitions", table(partition=by_hash(count)), 422, "invalid-request")


def _envelopes() -> Iterator[Row]:
    media, large = "unsupported-media-type", "body-too-large"
    yield Row(20, "text/plain", body(GOOD, headers={"content-type": "text/plain"}), 415, media)
    yield Row(20, "no content type", body(GOOD, headers={}), 415, media)
    utf16 = spec_text().encode("utf-16")
    declared = {"content-type": "application/json; charset=utf-16"}
    yield Row(21, "UTF-16", body(utf16, headers=declared), 400, "malformed-json")
    packed = {**JSON, "content-encoding": "gzip"}
    yield Row(22, "gzip", body(GOOD, headers=packed), 415, media)
    yield Row(23, "10 MB", body(b" " * (10 << 20)), 413, large)
    parts = (b" " * (1 << 19),) * 4
    yield Row(24, "2 MB in chunks", Sent(parts=parts, chunked=True), 413, large)


def spec_text() -> str:
    return GOOD.decode()


def _names() -> Iterator[Row]:
    for name in ("", "a" * 129, "1abc", "a b", " a", "a "):
        yield Row(30, repr(name)[:12], named(name), 422, "invalid-identifier")
    for number, name in (
        (31, "a/b"),
        (32, ".."),
        (32, "."),
        (33, "a\0b"),
        (34, "a\n"),
        (35, "a\u202eb"),
        (35, "a\u200bb"),
        (35, "\u0301"),
        (36, "caf\u00e9"),
        (36, "cafe\u0301"),
        (36, "\u0130"),
        (36, "\u0131"),
    ):
        yield Row(number, repr(name), named(name), 422, "invalid-identifier")
    for name in ("__meta", "information_schema", "Information_Schema"):
        yield Row(37, name, named(name), 422, "reserved-name")


def _paths() -> Iterator[Row]:
    for number, escaped in (
        (38, "a%2Fb"),
        (38, "..%2f..%2felection"),
        (39, "a%00"),
        (40, "a%ff"),
        (41, "%zz"),
        (41, "%"),
    ):
        yield Row(number, escaped, get(f"{TABLES}/{escaped}"), 400, "bad-path")
    yield Row(41, "twice", get(f"{TABLES}/%252e%252e"), 422, "invalid-identifier")
    yield Row(42, "trailing slash", get(f"{TABLES}/"), 404, "not-found")
    yield Row(42, "trailing slash", get(f"{TABLES}/held/"), 404, "not-found")


def _specs() -> Iterator[Row]:
    wrong = "invalid-request"
    yield Row(43, "no columns", columns(), 422, wrong)
    many: list[dict[str, Any]] = [ID, *({"name": f"c{n}", "type": "int8"} for n in range(100_000))]
    yield Row(44, "100k columns", columns(*many), 413, "body-too-large")
    yield Row(44, "1025 columns", columns(*many[:1025]), 422, wrong)
    again = {"name": "ID", "type": "int8"}
    yield Row(45, "a column twice", columns(ID, ID), 422, wrong)
    yield Row(45, "but for case", columns(ID, again), 422, wrong)
    for type in ("varchar(-1)", "decimal(0,5)", "decimal(39,1)", "INT64", "int64 "):
        yield Row(46, type, columns(ID, {"name": "c", "type": type}), 422, wrong)
    yield Row(47, "key of no column", table(primary_key=["nope"]), 422, wrong)
    yield Row(47, "nullable key", table(primary_key=["carrier"]), 422, wrong)
    yield Row(47, "no key", table(primary_key=[]), 422, wrong)
    for what, bounds in (
        ("unsorted", ([20], [10])),
        ("twice", ([10], [10])),
        ("wrong type", (["x"],)),
        ("too many values", ([1, 2],)),
        ("none", ()),
    ):
        yield Row(48, what, table(partition=by_range(*bounds)), 422, wrong)
    text = {"name": "big", "type": "string", "default": "x" * 600_000}
    yield Row(49, "a transaction too large", columns(ID, text), 422, "ddl-too-large")
    for field in ("table_id", "epoch", "owner", "version"):
        yield Row(52, field, table(**{field: 1}), 422, wrong)


def _states() -> Iterator[Row]:
    yield Row(50, "it exists", named("held"), 409, "already-exists")
    other = table(name="held", if_not_exists=True, options={"app.x": "1d"})
    yield Row(50, "with another schema", other, 409, "schema-conflict")
    path = "/v1/catalogs/{}/schemas/{}/tables"
    for where in (("main", "absent"), ("absent", "public")):
        sent = body(GOOD, path=path.format(*where))
        yield Row(51, ".".join(where), sent, 404, "not-found")
    for key in ("", " ", "k" * 1024, "a\x07b", "a\x7f", "\u00e9"):
        sent = body(GOOD, headers={**JSON, "idempotency-key": key})
        yield Row(54, repr(key)[:12], sent, 400, "bad-idempotency-key")


def _changes() -> Iterator[Row]:
    held = f"{TABLES}/held"

    def changed(action: str, changes: Any, **headers: str) -> Sent:
        return body(orjson.dumps(changes), path=f"{held}/{action}", headers={**JSON, **headers})

    def altered(**operation: Any) -> Sent:
        return changed("alter", {"operations": [operation]})

    for tag, status, code in (
        ('"t1024-9"', 412, "version-mismatch"),
        ('"abc"', 412, "version-mismatch"),
        ("abc", 422, "invalid-request"),
        ("", 422, "invalid-request"),
    ):
        for sent in (
            changed("rename", {"new_name": "u"}, **{"if-match": tag}),
            Sent("DELETE", held, {"if-match": tag}),
        ):
            yield Row(55, repr(tag), sent, status, code)
    wrong = "invalid-schema-change"
    yield Row(56, "to itself", changed("rename", {"new_name": "held"}), 422, wrong)
    yield Row(56, "to another", changed("rename", {"new_name": "also"}), 409, "already-exists")
    elsewhere = {"new_name": "u", "new_catalog": "c"}
    yield Row(56, "elsewhere", changed("rename", elsewhere), 422, "invalid-request")
    for column in ("id", "no"):
        yield Row(57, "drop", altered(op="drop_column", name=column), 422, wrong)
    now = {"expression": "now()"}
    no_defaults: tuple[Any, ...] = (None, "ten", 1.5, now, {"expression": "rm()"}, [])
    for default in no_defaults:
        new = {"name": "x", "type": "int32", "nullable": False, "default": default}
        added = altered(op="add_column", column=new)
        yield Row(57, f"default {default}", added, 422, "invalid-request")
    no_text: tuple[Any, ...] = (5, [], now)
    for default in no_text:
        other = altered(op="set_default", name="carrier", default=default)
        yield Row(57, f"default {default}", other, 422, "invalid-request")
    relaxed = altered(op="set_nullable", name="id", nullable=True)
    yield Row(57, "null in a key", relaxed, 422, wrong)
    for name, type in (("id", "int32"), ("no", "int32"), ("carrier", "string")):
        narrow = altered(op="alter_type", name=name, type=type)
        yield Row(57, f"{name} {type}", narrow, 422, wrong)
    no_type = altered(op="alter_type", name="carrier", type="int7")
    yield Row(57, "no type", no_type, 422, "invalid-request")
    strict = altered(op="set_nullable", name="no", nullable=False)
    yield Row(57, "not null", strict, 422, wrong)
    no_checks: tuple[Any, ...] = ("", "carrier", "no > 1", "carrier > 1", "1 < 2", "id() > 1")
    for check in no_checks:
        checked = altered(op="add_constraint", name="c", check=check)
        yield Row(57, f"check {check}", checked, 422, "invalid-request")
    gone = altered(op="drop_constraint", name="no")
    yield Row(57, "no constraint", gone, 404, "not-found")
    yield Row(57, "no column", altered(op="rename_column", name="no", new_name="x"), 422, wrong)
    absent = Sent("DELETE", f"{TABLES}/absent", {})
    yield Row(62, "absent", absent, 404, "table-not-found")


def _lists() -> Iterator[Row]:
    for size in ("0", "-1", "1000000000", "abc", "1.0", "", "+5", "%205"):
        sent = get(f"{TABLES}?page_size={size}")
        yield Row(63, f"page_size={size}", sent, 422, "invalid-request")
    yield Row(63, "unknown", get(f"{TABLES}?limit=5"), 422, "invalid-request")
    for token in ("forged", "AAAA", "!", "%00"):
        sent = get(f"{TABLES}?page_token={token}")
        yield Row(64, token, sent, 400, "bad-page-token")

    for version in ("version:-1", "version:abc", "version:", "1e3", "-1", "yesterday"):
        sent = get(f"{TABLES}?as_of={version}")
        yield Row(65, version, sent, 422, "invalid-request")


def _others() -> Iterator[Row]:
    here = "/v1/failovers"

    def failover(**facts: Any) -> Sent:
        return body(orjson.dumps({"reason": "test", **facts}), path=here)

    yield Row(67, "unknown region", failover(region_ids=[REGION]), 404, "not-found")
    for region in ("-1", str(2**64), "abc", "01", ""):
        yield Row(67, region, failover(region_ids=[region]), 422, "invalid-request")
    yield Row(67, "a number", failover(region_ids=[1]), 422, "invalid-request")
    yield Row(67, "unknown node", failover(node_id="dn-9"), 404, "not-found")
    yield Row(67, "neither", failover(), 422, "invalid-request")
    for most in (0, -1, 10**9, "PT1S", True):
        sent = failover(node_id="dn-1", max_parallel=most)
        yield Row(67, "at once", sent, 422, "invalid-request")
    region_ids = [REGION]
    for epoch in (-1, "1", 1.5):
        sent = failover(region_ids=region_ids, expected_epoch=epoch)
        yield Row(71, str(epoch), sent, 422, "invalid-request")
    gone = "00000000-0000-7000-8000-000000000000"
    yield Row(81, "no UUID", get("/v1/procedures/42"), 404, "procedure-not-found")
    yield Row(81, "unknown", get(f"/v1/procedures/{gone}"), 404, "procedure-not-found")
    invented = body(b'{"kind":"x"}', path="/v1/procedures")
    yield Row(84, "a kind", invented, 405, "method-not-allowed")
    for step in ("steps", "steps/create", "run"):
        path = f"/v1/procedures/{gone}/{step}"
        yield Row(84, step, body(b"{}", path=path), 404, "not-found")
    for method in ("PATCH", "PUT", "OPTIONS"):
        sent = Sent(method, TABLES, JSON, (b"{}",))
        yield Row(103, method, sent, 405, "method-not-allowed")
    for path in ("/v0/tables", "/v1", "/v1/nothing", "/redoc", "/docs/"):
        yield Row(103, path, get(path), 404, "not-found")
    yield Row(103, "no such action", Sent(path=f"/v1/procedures/{gone}/x"), 404, "not-found")

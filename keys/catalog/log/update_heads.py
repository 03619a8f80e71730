"""The head of an update: the fields that groups and filters of the history use. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from keys.commit.staged_parts import is_staged
from keys.model import log
from keys.model.log import CatalogUpdate
from keys.store.kv import KeyValue
from metasrv_base.errors import Corrupt

TABLES_MAX = 64  # named in a head; of an update of more tables, each may be meant
_OF_TABLES = ("table.", "tables.", "route.")
"""Beginnings of the names of entries that change tables alone."""


class UpdateHead(NamedTuple):
    version: int
    procedure: str | None
    parent: str | None
    """The procedure that submitted `procedure`; None: a client did."""
    by: str | None
    table_ids: frozenset[int] | None
    """The tables that it changes; None: too many, or they are in parts."""


def head_of(update: CatalogUpdate) -> UpdateHead:
    origin = update.origin
    ids = set[int]()
    for entry in update.entries:
        match entry:
            case log.TablesExchanged():
                ids |= {entry.first.table_id, entry.second.table_id}
            case (
                log.TableDropped()
                | log.TablePurged()
                | log.RouteChanged()
                | log.DroppedRouteChanged()
            ):
                ids.add(entry.table_id)
            case (
                log.TableCreated() | log.TableRenamed() | log.TableAltered() | log.TableUndropped()
            ):
                ids.add(entry.info.table_id)
            case _:
                continue
    parent, by = (None, None) if origin is None else (origin.parent, origin.by)
    return UpdateHead(update.version, update.procedure, parent, by, _few(ids))


def heads_in(items: Iterable[KeyValue]) -> list[UpdateHead]:
    """The heads of stored updates, which are not decoded further. Raises Corrupt."""
    return [_head_in(item) for item in items]


def _head_in(item: KeyValue) -> UpdateHead:
    try:
        raw = orjson.loads(CatalogUpdate.unpack(item.value))
        origin = raw.get("origin") or {}
        ids = None if is_staged(item.value) else _few(_ids_in(raw["entries"]))
        return UpdateHead(
            raw["version"], raw["procedure"], origin.get("parent"), origin.get("by"), ids
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(key=item.key.decode(), value=item.value[:200]) from error


def _ids_in(entries: Iterable[Mapping[str, Any]]) -> set[int]:
    ids = set[int]()
    for entry in entries:
        if "first" in entry:
            ids |= {entry["first"]["table_id"], entry["second"]["table_id"]}
        elif entry["op"].startswith(_OF_TABLES):
            ids.add(entry.get("info", entry)["table_id"])
    return ids


def _few(ids: set[int]) -> frozenset[int] | None:
    return frozenset(ids) if len(ids) <= TABLES_MAX else None

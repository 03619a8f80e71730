"""Names that exist, for one that does not: the near one, or a few of all."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from metasrv_base.errors import MetaError, NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client

SHOWN_MAX = 10
"""Names of all that exist, where none comes near."""
PROCEDURES_MAX = 100
"""The newest procedures, with whose ids one is compared."""
TABLE_SHIFT = 32
"""A region's id holds that of its table above this bit."""
ID_CUTOFF = 0.9
"""Ids of one moment resemble each other: near is what differs in a few characters."""
NAME_CUTOFF = 0.6

Names = Callable[["Client", str], list[str]]
"""Names of the kind, of those that are near a full name."""


def _schemas(client: "Client", name: str) -> list[str]:
    return [schema.name for schema in client.schemas.list(name.rpartition(".")[0])]


def _regions(client: "Client", name: str) -> list[str]:
    """Regions of the table that the id names: a cluster may have a million."""
    if not name.isascii() or not name.isdecimal():
        return []
    regions = client.regions.list(table_id=int(name) >> TABLE_SHIFT)
    return [region.region_id for region in regions]


_NAMES: Mapping[object, Names] = {
    "setting": lambda client, _: [setting.name for setting in client.settings.list()],
    "node": lambda client, _: [node.id for node in client.nodes.list()],
    "catalog": lambda client, _: [catalog.name for catalog in client.catalogs.list()],
    "schema": _schemas,
    "region": _regions,
    "poison": lambda client, _: [
        f"{poison.resource.type}:{poison.resource.id}" for poison in client.procedures.poisons()
    ],
}
"""Kinds of objects whose names the service lists."""


def suggestion(client: "Client", error: NotFound) -> dict[str, object]:
    """Facts: `did_you_mean`, or `existing` and its `more`; none if the service does not say."""
    try:
        return _suggestion(client, error)
    except MetaError:  # the first error is the one to be told
        return {}


def _suggestion(client: "Client", error: NotFound) -> dict[str, object]:
    match error.code:
        case "table-not-found":
            return _near_table(client, str(error.facts.get("name")))
        case "procedure-not-found":
            ids = [procedure.id for procedure in client.procedures.list(PROCEDURES_MAX)]
            return _near(str(error.facts.get("procedure_id")), ids, ID_CUTOFF)
    names_of = _NAMES.get(error.facts.get("what"))
    if names_of is None:
        return {}
    name = str(error.facts.get("name"))
    all_names = names_of(client, name)
    near = _near(name.rpartition(".")[2], all_names, NAME_CUTOFF)
    if near or not all_names or name in all_names:
        return near
    more = len(all_names) - SHOWN_MAX
    return {"existing": all_names[:SHOWN_MAX], **({"more": more} if more > 0 else {})}


def _near(name: str, names: list[str], cutoff: float) -> dict[str, object]:
    close = get_close_matches(name, [other for other in names if other != name], 1, cutoff)
    return {"did_you_mean": close[0]} if close else {}


def _near_table(client: "Client", text: str) -> dict[str, object]:
    """The near name among those of its schema that begin with the same letter. *text*: a full name,
    after which it may say that it is among the dropped ones."""
    full_name, _, is_dropped = text.partition(" ")
    within, _, name = full_name.rpartition(".")
    if not within or not name:
        return {}
    tables = client.tables.list(within, name[0], bool(is_dropped))
    names = [table.name for table in tables if not is_dropped or table.dropped_at is not None]
    return _near(name, names, NAME_CUTOFF)

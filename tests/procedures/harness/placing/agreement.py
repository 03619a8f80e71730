"""Do placements, tablespaces and those who use them agree, as keys and as the log has them?"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Parts = tuple[str, ...]
Family = Callable[[str], dict[Parts, Any]]
DEFAULT_PLACEMENT_ID = 1024


@dataclass
class PlacingLog:
    """The log's own idea of them, by the key that each has."""

    placements: dict[Parts, Any] = field(default_factory=dict)
    tablespaces: dict[Parts, Any] = field(default_factory=dict)
    given: list[tuple[str, int]] = field(default_factory=list)
    """Ids in the order in which they were given out."""

    def apply(self, entry: dict[str, Any]) -> None:
        what, _, done = entry["op"].partition(".")
        keys = self.placements if what == "placement" else self.tablespaces
        within = () if what == "placement" else (entry.get("catalog") or entry["info"]["catalog"],)
        if done in ("renamed", "dropped"):
            del keys[(*within, entry["name"])]
        if done != "dropped":
            keys[(*within, entry["info"]["name"])] = entry["info"]
        if done == "created":
            self.given.append((what, entry["info"][f"{what}_id"]))

    @property
    def has_defaults(self) -> bool:
        """Whether the cluster has ever had a default placement: one from before there were any has
        none until a leader makes it."""
        return ("placement", DEFAULT_PLACEMENT_ID) in self.given

    def disagreements(self, family: Family) -> Iterator[str]:
        placements, spaces = family("__placement"), family("__tablespace")
        if placements != self.placements:
            yield f"placements {placements}, by the log {self.placements}"
        if spaces != self.tablespaces:
            yield f"tablespaces {spaces}, by the log {self.tablespaces}"
        if len(set(self.given)) != len(self.given):
            yield f"an id was given twice: {self.given}"
        catalogs = {where[0] for where in family("__catalog_name")}
        defaults = {catalog for catalog, name in spaces if name == "default"}
        if self.has_defaults and (("default",) not in placements or catalogs != defaults):
            yield f"no default among {sorted(placements)}, {sorted(spaces)}"
        yield from _uses(family)


def _uses(family: Family) -> Iterator[str]:
    infos = [info for info in family("__table_info").values() if info.get("dropping") is None]
    ids = {info["placement_id"] for info in family("__placement").values()}
    space_ids = {s["tablespace_id"]: s["catalog"] for s in family("__tablespace").values()}
    placed, grouped = dict[Parts, Any](), dict[Parts, Any]()
    for info in infos:
        table, profile = str(info["table_id"]), info.get("storage_profile")
        placement, space = info.get("placement_id"), info.get("tablespace_id")
        if placement is not None and placement not in ids:
            yield f"table {table} uses placement {placement}, which does not exist"
        if space is not None and space_ids.get(space) != info["catalog"]:
            yield f"table {table} is in tablespace {space}, which its catalog lacks"
        if placement is not None or profile is not None:
            said = {} if profile is None else {"storage_profile": profile}
            value = {"format": 1, "table_id": int(table), **said}
            placed[(str(placement or DEFAULT_PLACEMENT_ID), table)] = value
        if space is not None:
            grouped[(str(space), table)] = {"format": 1, "table_id": int(table)}
    for name, wanted in (("__placement_table", placed), ("__tablespace_table", grouped)):
        if family(name) != wanted:
            yield f"{name}: {family(name)}, not {wanted}"

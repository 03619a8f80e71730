"""Do the keys, the reverse index and the log agree? Asked of raw keys, at every revision.

Written from docs/keyspace.md and G2, G5, G7, G10, without any model of the product: what both
got wrong in the same way would not be seen. (`metasrv check` is another checker, for operators.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keys.store.kv import Event, Watched
from tests.keys.model.plain import plain
from tests.procedures.engine import pauses
from tests.procedures.harness import transitions
from tests.procedures.harness.placing.agreement import PlacingLog

Parts = tuple[str, ...]
LOG = ("__catalog", "update")
SEQUENCED = {"table_id": "table_id", "schema_id": "schema_id", "catalog_id": "catalog_id"}


def history_of(log: Iterable[Watched], so_far: "Agreement | None" = None) -> "Agreement":
    """The agreement after every revision of *log*, with all that was wrong on the way.

    *so_far*: of the revisions before, which goes on.
    """
    agreement = so_far or Agreement()
    for entry in log:
        agreement.move(entry.revision, entry.events)
    return agreement


def _changed_by(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Ids of tables whose definition each of *entries* replaces."""
    for entry in entries:
        if entry["op"] in ("table.renamed", "table.altered", "tables.exchanged"):
            parts = (entry[one] for one in ("info", "first", "second") if one in entry)
            yield from (str(info["table_id"]) for info in parts)


@dataclass
class Agreement:
    """Keys as parsed JSON, by family, and the log's own idea of the catalog."""

    keys: dict[str, dict[Parts, Any]] = field(default_factory=dict)
    logged: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Table id -> what the log says of it."""
    schemas: set[Parts] = field(default_factory=set)
    catalogs: set[str] = field(default_factory=set)
    leaving: set[Parts] = field(default_factory=set)
    """Catalogs and schemas that are being dropped with all they hold: nothing comes into them."""
    placing: PlacingLog = field(default_factory=PlacingLog)
    versions: int = 0
    at_ms: int = 0
    epochs: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Region -> its highest epoch so far, and who led it then."""
    ids_seen: set[int] = field(default_factory=set)
    effects: dict[str | None, list[str]] = field(default_factory=dict)
    """Procedure -> the log entries it made."""
    endings: dict[str, int] = field(default_factory=dict)
    """Procedure -> how often a history of it was written."""
    changes: Counter[str] = field(default_factory=Counter)
    """Changes of each table's definition in the revision that is looked at."""
    wrong: list[str] = field(default_factory=list)

    def family(self, name: str) -> dict[Parts, Any]:
        return self.keys.get(name, {})

    def move(self, revision: int, events: Iterable[Event]) -> None:
        before = len(self.wrong)
        writes: list[tuple[str, Parts, Any]] = []
        for event in events:
            head, *parts = event.key.decode().split("/")
            value = None if event.value is None else plain(event.key, event.value)
            writes.append((head, tuple(parts), value))
        updates: list[dict[str, Any]] = [
            value for head, where, value in writes if value and (head, *where[:1]) == LOG
        ]
        for head, where, value in writes:
            if head == "__batch":
                self.keys.setdefault(head, {})[where] = value
        if not self.uncopied:
            self.changes = Counter(
                table for one in updates for table in _changed_by(self.entries_of(one))
            )
        elif updates:
            self.wrong.append("a version while keys of the one before are not written")
        for head, where, value in writes:
            self._changed(head, where, value)
            family = self.keys.setdefault(head, {})
            if value is None:
                family.pop(where, None)
            else:
                family[where] = value
        for update in sorted(updates, key=lambda update: int(update["version"])):
            self._log(update)
        self.wrong += self._disagreements()
        self.wrong[before:] = [f"revision {revision}: {text}" for text in self.wrong[before:]]

    @property
    def floor(self) -> int:
        """The version of the oldest snapshot: updates up to it and their parts are being deleted,
        in any order."""
        kept = self.family("__catalog").get(("snapshot", "version"))
        return 0 if kept is None else int(kept["kept"][0]["version"])

    @property
    def uncopied(self) -> list[Parts]:
        """Large versions whose keys are not all written."""
        large = {w: v for w, v in self.family("__catalog").items() if w[0] == "large"}
        return [where for where, value in large.items() if value["copied"] < value["keys"]]

    def entries_of(self, update: dict[str, Any]) -> list[dict[str, Any]]:
        """The entries of an update of the log, wherever they are."""
        if not update.get("staged"):
            return list(update["entries"])
        ref = update["staged"]
        parts = {w: v for w, v in self.family("__batch").items() if w[0] == ref["batch"] and v}
        if [int(where[1]) for where in sorted(parts)] != list(range(ref["parts"])):
            self.wrong.append(f"version {update['version']} names parts that are not there")
        return [entry for _, part in sorted(parts.items()) for entry in part["entries"]]

    # ---- how single keys may move

    def _changed(self, head: str, where: Parts, value: Any) -> None:
        old = self.family(head).get(where)
        if head == "__procedure" and old is not None and value is not None:
            self.wrong += [f"procedure {where[0]}: {text}" for text in pauses.faults(old, value)]
        if head == "__procedure_history" and value is not None:
            self.endings[where[0]] = self.endings.get(where[0], 0) + 1
        if head in ("__table_info", "__table_route") and old is not None and value is not None:
            steps = self.changes[where[0]] if head == "__table_info" else 1
            self._must_follow(old["version"], value["version"], f"{head} {where}", steps)
        if head == "__table_info" and old is not None and value is not None:
            self.wrong += [f"{head} {where}: {text}" for text in transitions.faults(old, value)]
        if head in ("__table_route", "__removed-__table_route") and value is not None:
            for region in value.get("route", value)["region_routes"]:
                self._epoch(region)
        if head == "__sequence" and old is not None and value["next"] <= old["next"]:
            self.wrong.append(f"sequence {where} goes back")
        if head == "__catalog" and where[0] == "update" and old is not None and value is not None:
            self.wrong.append(f"log entry {where} is written twice")

    def _must_follow(self, old: int, new: int, what: str, steps: int) -> None:
        """*steps*: changes of it in this revision; several where a batch names it twice."""
        if new != old + steps:
            self.wrong.append(f"{what}: version {new} after {old}")

    def _epoch(self, region: dict[str, Any]) -> None:
        """A new region may begin at any epoch: it was placed again, as its nodes had died."""
        name, now = region["region_id"], (region["epoch"], region["leader"])
        epoch, leader = self.epochs.get(name, (0, ""))
        is_next = now[0] in (epoch, epoch + 1) or not epoch
        if not is_next or (now[0] == epoch and now[1] != leader):
            self.wrong.append(f"region {name}: {leader} at {epoch}, then {now[1]} at {now[0]}")
        self.epochs[name] = now

    # ---- the log

    def _log(self, update: dict[str, Any]) -> None:
        if update["version"] != self.versions + 1 or update["at_ms"] <= self.at_ms:
            self.wrong.append(f"log: {update['version']} after {self.versions}, or its time")
        self.versions, self.at_ms = update["version"], update["at_ms"]
        made = self.effects.setdefault(update["procedure"], [])
        for entry in self.entries_of(update):
            made.append(entry["op"])
            self._apply(entry)

    def _apply(self, entry: dict[str, Any]) -> None:
        if entry["op"].startswith(("catalog.", "schema.")):
            self._apply_name(entry)
        elif entry["op"].startswith(("placement.", "tablespace.")):
            self.placing.apply(entry)
        else:
            self._apply_table(entry)

    def _apply_name(self, entry: dict[str, Any]) -> None:
        match entry["op"]:
            case "catalog.created":
                self.catalogs.add(entry["info"]["name"])
            case "catalog.dropping":
                self.leaving.add((entry["info"]["name"],))
            case "catalog.dropped":
                self.catalogs.remove(entry["name"])
                self.leaving.discard((entry["name"],))
            case "schema.dropping":
                self.leaving.add((entry["info"]["catalog"], entry["info"]["name"]))
            case "schema.created":
                self.schemas.add((entry["info"]["catalog"], entry["info"]["name"]))
            case "schema.dropped":
                self.schemas.remove((entry["catalog"], entry["name"]))
                self.leaving.discard((entry["catalog"], entry["name"]))

    def _apply_route(self, entry: dict[str, Any]) -> None:
        table = self.logged[entry["table_id"]]
        if ("dropped" in table) != (entry["op"] == "route.dropped_changed"):
            self.wrong.append(f"log: {entry['op']} of table {entry['table_id']}")
        route = table["route"]
        new = {region["region_id"]: region for region in entry["regions"]}
        routes = [new.get(r["region_id"], r) for r in route["region_routes"]]
        has_copies = any(r.get("copies") or r.get("copies_version") for r in routes)
        table["route"] = {
            **route,
            "format": 2 if has_copies else 1,
            "version": entry["version"],
            "region_routes": routes,
        }

    def _apply_table(self, entry: dict[str, Any]) -> None:
        match entry["op"]:
            case "table.created" | "table.undropped":
                table_id = entry["info"]["table_id"]
                if (table_id in self.logged) != (entry["op"] == "table.undropped"):
                    self.wrong.append(f"log: {entry['op']} of table {table_id}")
                within = (entry["info"]["catalog"], entry["info"]["schema"])
                if self.leaving & {within, within[:1]}:
                    self.wrong.append(f"log: {entry['op']} into {within}, which is being dropped")
                self.logged[table_id] = {"info": entry["info"], "route": entry["route"]}
            case "table.renamed" | "table.altered" | "tables.exchanged":
                for info in (entry[one] for one in ("info", "first", "second") if one in entry):
                    self.logged[info["table_id"]]["info"] = info
            case "table.dropped":
                self.logged[entry["table_id"]]["dropped"] = entry["dropped_at_ms"]
            case "table.purged":
                if "dropped" not in self.logged.pop(entry["table_id"], {}):
                    self.wrong.append(f"log: {entry['op']} of table {entry['table_id']}")
            case "route.changed" | "route.dropped_changed":
                self._apply_route(entry)

    # ---- what must be true at each revision

    def _disagreements(self) -> list[str]:
        if not self.family("__catalog"):
            return []
        for where, update in self.family("__catalog").items():
            if where[0] == "update" and int(where[1]) > self.floor:
                self.entries_of(update)
        if self.uncopied:  # a reader of keys is kept from them until they are written
            return list(self._records())
        placing = self.placing.disagreements(self.family)
        parts = (self._names(), self._routes(), self._removed(), self._logs(), self._records())
        return [*(text for part in parts for text in part), *placing]

    def _names(self) -> Iterator[str]:
        infos, names = self.family("__table_info"), self.family("__table_name")
        borne = {
            (info["catalog"], info["schema"], info["name"]): info["table_id"]
            for info in infos.values()
            if info.get("dropping") is None
        }
        if borne != {where: name["table_id"] for where, name in names.items()}:
            yield f"names {sorted(names)} and infos {sorted(borne)}"
        for info in infos.values():
            if info.get("dropping") is not None:
                if info["state"] == "public":
                    yield f"table {info['table_id']} is dropped and not hidden"
            elif (info["catalog"], info["schema"]) not in self.family("__schema_name"):
                yield f"table {info['table_id']} in a schema that does not exist"
        if set(self.family("__schema_name")) != self.schemas:
            yield f"schemas {set(self.family('__schema_name')) ^ self.schemas}"
        catalogs = {where[0] for where in self.family("__catalog_name")}
        if catalogs != self.catalogs:
            yield f"catalogs {catalogs ^ self.catalogs}"
        marked = {
            where
            for name in ("__catalog_name", "__schema_name")
            for where, value in self.family(name).items()
            if value["dropping"] is not None
        }
        if marked != self.leaving:
            yield f"marked {marked}, by the log {self.leaving}"

    def _routes(self) -> Iterator[str]:
        infos, routes = self.family("__table_info"), self.family("__table_route")
        if infos.keys() != routes.keys():
            yield f"infos {sorted(infos)} and routes {sorted(routes)}"
        held: dict[Parts, tuple[int, list[int]]] = {}
        for (table,), route in routes.items():
            numbers = [int(region["region_id"]) for region in route["region_routes"]]
            if {number >> 32 for number in numbers} != {int(table)}:
                yield f"route {table} has regions of another table"
            if [number & 0xFFFFFFFF for number in numbers] != list(range(len(numbers))):
                yield f"route {table} has regions {numbers}"
            for region, number in zip(route["region_routes"], numbers, strict=True):
                for node in (region["leader"], *(c["node"] for c in region.get("copies", ()))):
                    mine = held.setdefault((node, table), (route["version"], []))
                    mine[1].append(number & 0xFFFFFFFF)
        index = {
            where: (value["version"], value["regions"])
            for where, value in self.family("__dn_table").items()
        }
        if index != held:
            yield f"reverse index {index} and routes {held}"

    def _removed(self) -> Iterator[str]:
        infos = self.family("__removed-__table_info")
        routes = self.family("__removed-__table_route")
        names = {where[3]: where[:3] for where in self.family("__removed-__table_name")}
        if not infos.keys() == routes.keys() == {(table,) for table in names}:
            yield f"removed: {sorted(infos)}, {sorted(routes)}, {sorted(names)}"
        if infos.keys() & self.family("__table_info").keys():
            yield "a table lives and is removed"

    def _logs(self) -> Iterator[str]:
        found = self.family("__catalog")
        updates = sorted(int(where[1]) for where in found if where[0] == "update")
        above = [update for update in updates if update > self.floor]
        version = found[("version",)]["version"]
        if version != self.versions:
            yield f"version {version}, the log's {self.versions}"
        if above != list(range(self.floor + 1, self.versions + 1)):
            yield f"updates {updates} up to {self.versions}, the oldest snapshot is {self.floor}"
        living = {
            int(table): (info, self.family("__table_route").get((table,)))
            for (table,), info in self.family("__table_info").items()
        }
        dropped = {
            int(table): (gone["info"], self.family("__removed-__table_route")[(table,)]["route"])
            for (table,), gone in self.family("__removed-__table_info").items()
        }
        for which, keys in ((False, living), (True, dropped)):
            logged = {
                table: (said["info"], said["route"])
                for table, said in self.logged.items()
                if ("dropped" in said) is which
            }
            if logged != keys:
                yield f"the log says {logged}, the keys {keys}"
        self.ids_seen |= living.keys()
        for name, attribute in SEQUENCED.items():
            family = {"table_id": living}.get(attribute)
            following = self.family("__sequence").get((name,))
            if family and following and max(family) >= following["next"]:
                yield f"sequence {name} at {following['next']}, id {max(family)} exists"

    def _records(self) -> Iterator[str]:
        records, histories = self.family("__procedure"), self.family("__procedure_history")
        known = records.keys() | histories.keys()
        if records.keys() & histories.keys():
            yield "a procedure lives and is over"
        for digest, held in self.family("__idempotency").items():
            if (held["procedure"],) not in known:
                yield f"key {digest} of a procedure that never was"
        for procedure, made in self.effects.items():
            if procedure is not None and (procedure,) not in known:
                yield f"{made} by a procedure that never was"
        numbers = [record["submission"] for record in records.values()]
        if len(set(numbers)) != len(numbers):
            yield f"submission numbers {numbers}"

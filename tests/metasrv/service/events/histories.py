"""Logs of any length in which tables also change their elements, and namespaces come and go.

The definitions of a change are those that an alter publishes, one after the other, to its end or
back.
"""

from collections.abc import Callable, Iterator

from pydantic import TypeAdapter

from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import (
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    Entry,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
    TableAltered,
    TableDropped,
)
from keys.model.tables import TableInfo, TableRoute
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import MetaError
from procedures.elements.element_targets import (
    back,
    moved,
    past_no_return,
    to_end,
    to_last_undoable,
)
from procedures.kinds.alter.alter_operations import Operation, drafted, edited
from tests.keys.catalog.logs import World

OPERATION: TypeAdapter[Operation] = TypeAdapter(Operation)


class History(World):
    """As `World`; an entry may also be the next one of a change that takes several."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.altering: dict[int, list[TableInfo]] = {}
        """Definitions that a change has still to publish, by table."""
        self.leaving: list[Entry] = []
        """The rest of the drop of a schema or catalog."""
        self.held: dict[int, tuple[TableInfo, TableRoute]] = {}
        """Tables of the schema that is dropped."""
        self.names = 0

    def entry(self) -> Entry:
        if self.leaving and self.random.random() < 0.5:
            return self._leaves()
        acts: list[Callable[[], Entry | None]] = [
            *[self.go_on] * 4,
            *[self.begin] * 2,
            self.hide,
            self.leave_schema,
            self.leave_catalog,
        ]
        while True:
            entry = self.random.choice(acts)() if self.random.random() < 0.75 else super().entry()
            if entry is not None:
                self._interrupted()
                return entry

    def _interrupted(self) -> None:
        """A change of a table that was dropped, or renamed, goes no further."""
        for id, infos in list(self.altering.items()):
            now = self.living.get(id)
            names = None if now is None or now[0].is_hidden else now[0].full_name
            if not infos or names != infos[0].full_name:
                del self.altering[id]

    def go_on(self) -> Entry | None:
        """The next definition of a change under way."""
        if not self.altering:
            return None
        id = self.random.choice(sorted(self.altering))
        return self._altered(self.altering[id].pop(0))

    def _altered(self, info: TableInfo) -> Entry:
        old, route = self.living[info.table_id]
        info = info.model_copy(
            update={"version": old.version + 1, "schema_version": old.schema_version + 1}
        )
        self.living[info.table_id] = info, route
        return TableAltered(info=info)

    def begin(self) -> Entry | None:
        id = self.a_living()
        if id is None or id in self.altering:
            return None
        info, _ = self.living[id]
        try:
            operations = tuple(
                OPERATION.validate_python(self._operation(info))
                for _ in range(self.random.randint(1, 2))
            )
            self.altering[id] = list(self._stages(info, operations))
        except MetaError:
            return None
        if not self.altering[id]:
            del self.altering[id]
            return None
        return self.go_on()

    def _stages(self, info: TableInfo, operations: tuple[Operation, ...]) -> Iterator[TableInfo]:
        draft = drafted(info, operations)
        table = draft.entered
        is_undone = self.random.random() < 0.3
        while (new := moved(table, draft.moves, to_last_undoable)) != table:
            table = new
            yield table
            if is_undone and self.random.random() < 0.3:
                break
        if is_undone:
            while (new := moved(table, draft.moves, back)) != table:
                table = new
                yield table
            return
        table = edited(moved(table, draft.moves, past_no_return), operations)
        yield table
        while (new := moved(table, draft.moves, to_end)) != table:
            table = new
            yield table

    def _operation(self, info: TableInfo) -> dict[str, object]:
        draw = self.random
        self.names += 1
        new = f"n{self.names}"
        columns = [column.name for column in info.public_columns]
        name = draw.choice(columns)
        rules = [each.name for each in info.constraints] or ["no"]
        indexes = [each.name for each in info.indexes]
        if indexes and draw.random() < 0.3:
            return {"op": "drop_index", "name": draw.choice(indexes)}
        numbers = [each.name for each in info.public_columns[1:] if each.type == "int64"]
        if numbers and draw.random() < 0.3:
            return {"op": "alter_type", "name": draw.choice(numbers), "type": "string"}
        return draw.choice(
            [
                {"op": "add_column", "name": new, "type": "int64", "after": name},
                {"op": "add_column", "name": new, "type": "int64", "default": 7},
                {"op": "add_column", "name": new, "type": "string"},
                {"op": "drop_column", "name": name},
                {"op": "rename_column", "name": name, "new_name": new},
                {"op": "set_default", "name": name, "default": None},
                {"op": "set_not_null", "name": name},
                {"op": "drop_not_null", "name": name},
                {"op": "add_check", "name": new, "expression": f"{name} is not null"},
                {"op": "drop_constraint", "name": draw.choice(rules)},
                {"op": "add_index", "name": new, "columns": (name,), "unique": False},
                {"op": "set_options", "options": {"app.n": new}},
            ]
        )

    def a_living(self) -> int | None:
        """One that is not being dropped: a change of it would wait."""
        shown = [id for id, (info, _) in self.living.items() if not info.is_hidden]
        return self.random.choice(sorted(shown)) if shown else None

    def a_named(self) -> int | None:
        return self.a_living()

    def exchange(self) -> Entry | None:
        is_quiet = not any(info.is_hidden for info, _ in self.living.values())
        return super().exchange() if is_quiet else None

    def hide(self) -> Entry | None:
        """Hidden, then dropped or shown again."""
        hidden = [id for id, (info, _) in self.living.items() if info.is_hidden]
        if hidden:
            info, _ = self.living[self.random.choice(hidden)]
            if info.dropping is not None or self.random.random() < 0.5:
                self.dropped[info.table_id] = self.living.pop(info.table_id)
                return TableDropped(table_id=info.table_id, dropped_at_ms=5, dropped_by="p")
            return self._altered(info.model_copy(update={"state": ElementState.PUBLIC}))
        id = self.a_living()
        if id is None or id in self.altering:
            return None
        info, _ = self.living[id]
        return self._altered(info.model_copy(update={"state": ElementState.WRITE_ONLY}))

    def leave_schema(self) -> Entry | None:
        """A schema with its tables, which go one by one; a new one may bear its name later."""
        if self.leaving:
            return None
        name = self.random.choice(sorted(self.schemas - {"public"}) or [""])
        if not name:
            return None
        inside = [id for id, (info, _) in self.living.items() if info.schema_name == name]
        self.held = {id: self.living.pop(id) for id in inside}
        self.schemas.remove(name)
        drops = [TableDropped(table_id=id, dropped_at_ms=5, dropped_by="p") for id in inside]
        self.leaving = [*drops, SchemaDropped(catalog="main", name=name)]
        info = SchemaInfo(schema_id=1, catalog="main", name=name, created_at_ms=0, dropping="p")
        return SchemaDropping(info=info)

    def leave_catalog(self) -> Entry | None:
        """Another catalog with a schema, made and dropped."""
        if self.leaving:
            return None
        self.names += 1
        info = CatalogInfo(catalog_id=self.names, name=f"c{self.names}", created_at_ms=0)
        schema = SchemaInfo(schema_id=9, catalog=info.name, name="s", created_at_ms=0)
        gone = {"dropping": "p"}
        self.leaving = [
            SchemaCreated(info=schema),
            CatalogDropping(info=info.model_copy(update=gone)),
            SchemaDropping(info=schema.model_copy(update=gone)),
            SchemaDropped(catalog=info.name, name="s"),
            CatalogDropped(name=info.name),
        ]
        return CatalogCreated(info=info)

    def placed(self) -> list[TableInfo]:
        return super().placed() + [info for info, _ in self.held.values()]

    def _leaves(self) -> Entry:
        entry = self.leaving.pop(0)
        if isinstance(entry, TableDropped):
            self.dropped[entry.table_id] = self.held.pop(entry.table_id)
        return entry

    def create_schema(self) -> Entry | None:
        return None if self.leaving else super().create_schema()

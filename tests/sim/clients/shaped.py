"""A table whose columns and indexes come and go, as a single node would have it.

Each column has writes of its own, as rows have (tests/sim/checks/oracle.py). What a statement does
not name has the default of that moment; while a column is on its way, and so perhaps unknown to who
wrote, it perhaps kept what it had.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.sim.checks.oracle import Rows, Value, Written
from tests.sim.clients.elements import NULL, Element, Way, text_of
from tests.sim.clients.rules import Rules

Said = Mapping[str, int | str | None]
"""A row as it is sent; a column that is not in it is left out."""
BY_DEFAULT = "by default"
GONE = "gone"
SPARSE = "u"
"""A column from the beginning on; unless the table is crowded, rows seldom share its values."""
SPREAD, CROWD = 60, 6
"""Numbers of values of that column: usual, and in a crowded table."""
TOKEN, COPY = "v", "w"
"""Columns that every statement that puts a row writes, with one value that no other one writes: a
row of which they differ was torn."""


@dataclass(eq=False)
class Column(Element):
    origin: int | None = None
    values: Rows = field(default_factory=Rows)
    defaults: Rows = field(default_factory=Rows)
    """Defaults, under key 0."""

    def possible(self, key: int, began: float, ended: float) -> set[Value]:
        found: set[Value] = set()
        for one in self.values.standing(key, began, ended):
            is_unsaid = one.value in (None, BY_DEFAULT)  # None: as it was before there was a column
            found |= self._by_default(one) if is_unsaid else {one.value}
        return found

    def _by_default(self, written: Written) -> set[Value]:
        set_ = self.defaults.possible(0, written.began, written.ended)
        return {text_of(self.origin) if value is None else value for value in set_}


@dataclass(eq=False)
class Index(Element):
    columns: tuple[str, ...] = ()
    unique: bool = False


@dataclass(eq=False)
class Statement:
    """The possible changes of one statement, and their end."""

    began: float
    written: list[Written] = field(default_factory=list)
    left_out: list[tuple[Column, Written]] = field(default_factory=list)
    """Values of rows that may have been there: a column that was not named is kept while it
    moves."""

    def done(self, now: float) -> None:
        for one in self.written:
            one.ended = now
        for column, one in self.left_out:
            if not column.is_moving(self.began, now):
                one.ended = now

    def refused(self) -> None:
        for one in (*self.written, *(one for _, one in self.left_out)):
            one.refused = True


@dataclass(eq=False)
class Shaped:
    """One table, by its id."""

    table_id: int
    name: str
    rows: Rows
    """By their tokens."""
    regions: int
    is_crowded: bool = False
    """Whether rows share values of SPARSE, so that a unique index finds some twice."""
    columns: dict[str, Column] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    rules: Rules = field(default_factory=lambda: Rules([]))

    def __post_init__(self) -> None:
        self.columns[SPARSE] = Column(SPARSE, Way(-2.0, -1.0))

    @property
    def spread(self) -> int:
        return CROWD if self.is_crowded else SPREAD

    def known(self, now: float) -> list[Column]:
        """Columns that a client may name."""
        return [one for one in self.columns.values() if one.may_be_there(now, now)]

    def values(self, column: str, now: float) -> list[str]:
        """All that rows may have in a column, but null."""
        rows = self.rows if column in (TOKEN, COPY) else self.columns[column]
        found = {value for key in self.rows.keys for value in rows.possible(key, now, now)}
        return sorted(value for value in found if value not in (None, NULL, GONE))

    # ---- what is written

    def begin(self, op: str, rows: Sequence[Said], now: float) -> Statement:
        """*rows* as they are sent."""
        statement = Statement(now)
        for row in rows:
            key, token = key_of(row), row.get(TOKEN)
            value = None if token is None else str(token)
            statement.written.append(self.rows.begin(key, value, now))
            for column in self.columns.values():
                self._begin(statement, op, column, row)
        return statement

    def _begin(self, statement: Statement, op: str, column: Column, row: Said) -> None:
        key, now = key_of(row), statement.began
        if op == "delete":
            statement.written.append(column.values.begin(key, GONE, now))
        elif column.name in row:
            value = text_of(row[column.name])
            statement.written.append(column.values.begin(key, value, now))
        elif op == "insert":
            statement.written.append(column.values.begin(key, BY_DEFAULT, now))
        elif op == "upsert":
            written = column.values.begin(key, BY_DEFAULT, now)
            statement.left_out.append((column, written))

    def add(self, column: Column) -> None:
        """Statements that are under way may know of it."""
        self.columns[column.name] = column
        for key, written in self.rows.keys.items():
            for one in written:
                if not one.is_sure and not one.refused:
                    column.values.begin(key, BY_DEFAULT, one.began)

    # ---- what is found

    def wrong_row(self, found: Mapping[str, object], began: float, now: float) -> str | None:
        """Returns the fault of one row that was read, whole."""
        key, token = found["id"], found[TOKEN]
        assert isinstance(key, int)
        if token != found[COPY]:
            return f"key {key}: torn, {token!r} and {found[COPY]!r}"
        for name, column in self.columns.items():
            if name not in found:
                if column.is_there(began, now):
                    return f"key {key}: column {name} is missing"
                continue
            if not column.may_be_there(began, now):
                return f"key {key}: column {name} is not there"
            possible = column.possible(key, began, now)
            if text_of(found[name]) not in possible:
                right = sorted(map(str, possible))
                return f"key {key}: {name} is {found[name]!r}, right: one of {right}"
        return self.rows.wrong(key, str(token), began, now)

    def wrong_rows(
        self, found: Sequence[Mapping[str, object]], began: float, now: float
    ) -> Iterator[str]:
        """Yields the faults of a read of the whole table."""
        seen: set[object] = set()
        for row in found:
            if row["id"] in seen:
                yield f"{self.name}: key {row['id']} twice"
            seen.add(row["id"])
            wrong = self.wrong_row(row, began, now)
            if wrong is not None:
                yield f"{self.name}: {wrong}"
        for wrong in self.rules.wrong_reads(found, began, now):
            yield f"{self.name}: {wrong}"
        for key in sorted(self.rows.keys.keys() - seen):
            wrong = self.rows.wrong(key, None, began, now)
            if wrong is not None:
                yield f"{self.name}: {wrong}"

    def wrong_by_index(
        self,
        name: str,
        value: str | int,
        found: Sequence[Mapping[str, object]],
        began: float,
        now: float,
    ) -> Iterator[str]:
        """Yields the faults of a read of the rows that have *value* in the first column of an
        index."""
        column = self.indexes[name].columns[0]
        where = f"{self.name} by {name} = {value!r}"
        for row in found:
            if text_of(row[column]) != str(value):
                yield f"{where}: a row with {row[column]!r}"
            wrong = self.wrong_row(row, began, now)
            if wrong is not None:
                yield f"{where}: {wrong}"
        seen = {row["id"] for row in found}
        for key in sorted(self.rows.keys.keys() - seen):
            if self._has_certainly(key, column, value, began, now):
                yield f"{where}: key {key} is missing"

    def _has_certainly(
        self, key: int, column: str, value: str | int, began: float, now: float
    ) -> bool:
        tokens = self.rows.possible(key, began, now)
        if column in (TOKEN, COPY):
            return tokens == {value}
        return None not in tokens and self.columns[column].possible(key, began, now) == {
            text_of(value)
        }


def key_of(row: Said) -> int:
    key = row["id"]
    assert isinstance(key, int)
    return key

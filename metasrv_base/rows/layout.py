"""A table made ready for rows: columns with their types, the key, and the way to a region."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import pyarrow as pa

from metasrv_base.errors import Refused
from metasrv_base.schema.keycodec import decode, encode
from metasrv_base.schema.partition import Router, router
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value, from_json, from_python, to_json
from metasrv_base.wire.api.table_rules import rule_of
from metasrv_base.wire.api.tables import ColumnBody, TableBody

KeyLike = object
"""A key: one value, a tuple of values in the order of the primary key, or a dict by name."""


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    id: int
    name: str
    type: ColumnType
    nullable: bool
    default: Value | None

    @property
    def field(self) -> str:
        """Name of the column in batches (metasrv_base/wire/node/batches.py)."""
        return f"c{self.id}"

    @classmethod
    def of(cls, body: ColumnBody) -> "LayoutColumn":
        type = parse_type(body.type)
        default = None if body.default is None else from_json(type, body.default)
        return cls(body.id, body.name, type, body.nullable, default)


@dataclass(frozen=True)
class Layout:
    """The columns, key and partitions of a table's rows at one schema version."""

    table_id: int
    name: str
    schema_version: int
    columns: tuple[LayoutColumn, ...]
    """The columns in declared order."""
    key: tuple[LayoutColumn, ...]
    router: Router
    routed_by: tuple[LayoutColumn, ...]

    @classmethod
    def of(cls, body: TableBody) -> "Layout":
        columns = tuple(
            LayoutColumn.of(column) for column in body.columns if column.state == "public"
        )
        named = {column.name: column for column in columns}
        by_id = {column.id: column for column in columns}
        rule = rule_of(
            body.partition, body.primary_key, {column.name: column.id for column in columns}
        )
        routed_by = tuple(by_id[id] for id in rule.columns)
        return cls(
            table_id=body.id,
            name=f"{body.catalog}.{body.schema_name}.{body.name}",
            schema_version=body.schema_version,
            columns=columns,
            key=tuple(named[name] for name in body.primary_key),
            router=router(rule, [column.type for column in routed_by]),
            routed_by=routed_by,
        )

    @cached_property
    def named(self) -> Mapping[str, LayoutColumn]:
        return {column.name: column for column in self.columns}

    @property
    def key_types(self) -> tuple[ColumnType, ...]:
        return tuple(column.type for column in self.key)

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema for users: columns by name, in declared order."""
        return self.arrow_of(self.columns)

    @staticmethod
    def arrow_of(columns: Iterable[LayoutColumn]) -> pa.Schema:
        return pa.schema(
            [pa.field(column.name, column.type.arrow, column.nullable) for column in columns]
        )

    def chosen(self, names: Sequence[str] | None) -> tuple[LayoutColumn, ...]:
        """Columns by name, in the order asked for; None: all. Raises Refused."""
        if names is None:
            return self.columns
        for name in names:
            self.must_know(name, "/columns")
        return tuple(self.named[name] for name in names)

    def must_know(self, name: str, pointer: str) -> None:
        if name not in self.named:
            expected = f"a column of {self.name}"
            near = [self.spelled(name), *get_close_matches(name, self.named, n=1)]
            close = next((other for other in near if other != name), None)
            more = {} if close is None else {"did_you_mean": close}
            raise Refused("invalid-request", pointer=pointer, found=name, expected=expected, **more)

    def spelled(self, name: str) -> str:
        """A column's name as the table has it: no two differ by case alone. Unknown ones as they
        are."""
        return spelled(name, self.named)

    def has(self, columns: Iterable[LayoutColumn]) -> bool:
        """Whether these are columns of it still, whatever they are called."""
        own = {(column.id, column.type) for column in self.columns}
        return all((column.id, column.type) in own for column in columns)

    def key_values(self, key: KeyLike) -> tuple[Value, ...]:
        """The values of a whole key. Raises Refused."""
        values = self._sequence(key)
        if len(values) != len(self.key):
            names = ", ".join(column.name for column in self.key)
            raise Refused("invalid-request", pointer="/key", found=repr(key)[:64], expected=names)
        return self._checked(values)

    def key_bytes(self, key: KeyLike) -> bytes:
        return encode(self.key_types, self.key_values(key))

    def bound_values(self, bound: KeyLike) -> tuple[Value, ...]:
        """The values of a key, or its first ones. Raises Refused."""
        return self._checked(self._sequence(bound))

    def number_of(self, key: Sequence[Value]) -> int:
        """The region of a whole key."""
        positions = {column.id: position for position, column in enumerate(self.key)}
        return self.router.number([key[positions[column.id]] for column in self.routed_by])

    def key_shown(self, key: bytes) -> dict[str, Value]:
        """An encoded key by column name."""
        values = decode(self.key_types, key)
        return {column.name: value for column, value in zip(self.key, values, strict=True)}

    def key_json(self, key: bytes) -> dict[str, object]:
        """The same, in JSON's values."""
        shown = self.key_shown(key)
        return {column.name: to_json(column.type, shown[column.name]) for column in self.key}

    def _sequence(self, key: KeyLike) -> tuple[object, ...]:
        if isinstance(key, Mapping):
            missing = [column.name for column in self.key if column.name not in key]
            first = len(self.key) - len(missing)
            names = [column.name for column in self.key[:first]]
            if set(key) != set(names):
                actual, expected = (
                    ", ".join(map(str, key)),
                    ", ".join(column.name for column in self.key),
                )
                raise Refused("invalid-request", pointer="/key", found=actual, expected=expected)
            return tuple(key[name] for name in names)
        return tuple(key) if isinstance(key, tuple | list) else (key,)

    def _checked(self, values: Sequence[object]) -> tuple[Value, ...]:
        if len(values) > len(self.key):
            expected = f"at most {len(self.key)} values"
            raise Refused("invalid-request", pointer="/key", found=len(values), expected=expected)
        pairs = zip(self.key, values, strict=False)
        return tuple(
            from_python(column.type, value, f"/key/{column.name}") for column, value in pairs
        )


def spelled(name: str, names: Iterable[str]) -> str:
    """*name* as it stands in *names*, where case alone tells none from another."""
    same = (candidate for candidate in names if candidate.lower() == name.lower())
    return name if name in names else next(same, name)

"""Statements about placements and tablespaces.

CREATE PLACEMENT name [REPLICAS n] [MIN IN SYNC n] [PARTITIONS n]
    [STORAGE PROFILES (name ENGINE engine [(option = number, ..)], ..)]
    [ON NODES (ZONES ('a', ..), LABEL disk = 'ssd', LABEL rack IN ('r1', ..))]
    [PREFERRED ZONES ('a', ..) | PREFERRED ZONES NONE] [COMMENT 'text']
ALTER PLACEMENT name SET the same, without PARTITIONS [REASON 'text']
CREATE TABLESPACE [catalog.]name [COMMENT 'text']
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from metasrv_base.sql.commands import (
    AlterPlacementStatement,
    AlterTablespaceStatement,
    CreatePlacementStatement,
    CreateTablespaceStatement,
    DropPlacementStatement,
    DropTablespaceStatement,
    RenamePlacementStatement,
    RenameTablespaceStatement,
)
from metasrv_base.sql.names import name_in_catalog
from metasrv_base.sql.reader import Reader
from metasrv_base.wire.api.placing.placements import (
    LabelConditionSpec,
    NodeFilterSpec,
    PlacementPatch,
    PlacementSpec,
    StorageProfileSpec,
    TablespacePatch,
    TablespaceSpec,
)
from metasrv_base.wire.api.tables import DEFAULT_NUMBER, NumberOfCopies

Clauses: TypeAlias = dict[tuple[str, ...], tuple[str, Callable[[Reader], Any]]]
"""Words of a clause -> the field that it fills, and what reads the rest of it."""


def create_placement(reader: Reader) -> CreatePlacementStatement:
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = reader.name("a placement", "/name")
    fields = _clauses(reader)
    return CreatePlacementStatement(PlacementSpec(name=name, if_not_exists=if_not_exists, **fields))


def alter_placement(reader: Reader) -> AlterPlacementStatement | RenamePlacementStatement:
    if_exists = reader.takes("IF", "EXISTS")
    name = reader.name("a placement", "/placement")
    if reader.choose("SET", "RENAME") == "RENAME":
        reader.must_take("TO")
        return RenamePlacementStatement(name, reader.name("a placement", "/new_name"), if_exists)
    if reader.is_at_end:
        raise reader.unexpected(_expected())
    fields = _clauses(reader, _ALTERED)
    return AlterPlacementStatement(name, PlacementPatch(if_exists=if_exists, **fields))


def drop_placement(reader: Reader) -> DropPlacementStatement:
    if_exists = reader.takes("IF", "EXISTS")
    return DropPlacementStatement(reader.name("a placement", "/placement"), if_exists)


def comment_on_placement(reader: Reader) -> AlterPlacementStatement:
    name = reader.name("a placement", "/placement")
    return AlterPlacementStatement(name, PlacementPatch(comment=_is(reader)))


def create_tablespace(reader: Reader) -> CreateTablespaceStatement:
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = name_in_catalog(reader, "a tablespace", "/name")
    comment = reader.text("a comment", "/comment") if reader.takes("COMMENT") else None
    spec = TablespaceSpec(name=name.name, if_not_exists=if_not_exists, comment=comment)
    return CreateTablespaceStatement(name.catalog, spec)


def alter_tablespace(reader: Reader) -> AlterTablespaceStatement | RenameTablespaceStatement:
    if_exists = reader.takes("IF", "EXISTS")
    name = name_in_catalog(reader, "a tablespace", "/tablespace")
    if reader.choose("SET", "RENAME") == "RENAME":
        reader.must_take("TO")
        return RenameTablespaceStatement(name, reader.name("a tablespace", "/new_name"), if_exists)
    reader.must_take("COMMENT")
    patch = TablespacePatch(comment=_comment(reader), if_exists=if_exists)
    return AlterTablespaceStatement(name, patch)


def drop_tablespace(reader: Reader) -> DropTablespaceStatement:
    if_exists = reader.takes("IF", "EXISTS")
    return DropTablespaceStatement(
        name_in_catalog(reader, "a tablespace", "/tablespace"), if_exists
    )


def comment_on_tablespace(reader: Reader) -> AlterTablespaceStatement:
    name = name_in_catalog(reader, "a tablespace", "/tablespace")
    return AlterTablespaceStatement(name, TablespacePatch(comment=_is(reader)))


def _is(reader: Reader) -> str | None:
    reader.must_take("IS")
    return _comment(reader)


# -- clauses of a placement


def _clauses(reader: Reader, clauses: Clauses | None = None) -> dict[str, Any]:
    """Reads clauses to the end of the statement; returns fields of the spec."""
    fields: dict[str, Any] = {}
    choices = _CLAUSES if clauses is None else clauses
    while not reader.is_at_end:
        for words, (name, read) in choices.items():
            if reader.is_next(*words):
                if name in fields:
                    raise reader.unexpected("each clause once")
                reader.must_take(*words)
                fields[name] = read(reader)
                break
        else:
            raise reader.unexpected(_expected(), choices=[words[0] for words in choices])
    return fields


def _expected() -> str:
    return f"{', '.join(' '.join(words) for words in _CLAUSES)} or the end of the statement"


def _profiles(reader: Reader) -> tuple[StorageProfileSpec, ...]:
    return reader.listed(lambda number: _profile(reader, f"/storage_profiles/{number}"))


def _profile(reader: Reader, pointer: str) -> StorageProfileSpec:
    name = reader.name("a storage profile", f"{pointer}/name")
    reader.must_take("ENGINE")
    engine = reader.name("an engine", f"{pointer}/engine")
    options: dict[str, int] = {}

    def option(_: int) -> None:
        token = reader.token
        name = reader.name("an option of the engine")
        if name in options:
            raise reader.unexpected("each option once", token=token)
        reader.must_take("=")
        options[name] = reader.whole_number("a whole number", f"{pointer}/options/{name}")

    if reader.is_next("("):
        reader.listed(option)
    return StorageProfileSpec(name=name, engine=engine, options=options)


def _nodes(reader: Reader) -> NodeFilterSpec:
    zones: list[str] = []
    labels: list[LabelConditionSpec] = []

    def condition(_: int) -> None:
        if reader.choose("ZONES", "LABEL") == "ZONES":
            with reader.placed("/node_filter/zones"):
                zones.extend(reader.listed(lambda _: reader.text("a zone")))
        else:
            labels.append(_label(reader, f"/node_filter/labels/{len(labels)}"))

    reader.listed(condition)
    return NodeFilterSpec(zones=tuple(zones), labels=tuple(labels))


def _preferred_zones(reader: Reader) -> tuple[str, ...]:
    if reader.takes("NONE"):
        return ()
    if not reader.is_next("("):
        raise reader.unexpected("NONE or (")
    return reader.listed(lambda number: reader.text("a zone", f"/preferred_zones/{number}"))


def _label(reader: Reader, pointer: str) -> LabelConditionSpec:
    label = reader.name("a label", f"{pointer}/label")
    if reader.takes("="):
        value = reader.text("a value of the label", f"{pointer}/equals")
        return LabelConditionSpec(label=label, equals=value)
    if not reader.takes("IN"):
        raise reader.unexpected("= or IN")
    values = reader.listed(lambda number: reader.text("a value", f"{pointer}/in/{number}"))
    return LabelConditionSpec.model_validate({"label": label, "in": values})


def _new_minimum(reader: Reader) -> NumberOfCopies:
    if reader.takes("DEFAULT"):
        return DEFAULT_NUMBER
    return reader.whole_number("copies", "/min_in_sync")


def _comment(reader: Reader) -> str | None:
    return None if reader.takes("NULL") else reader.text("a comment", "/comment")


_CLAUSES: Clauses = {
    ("REPLICAS",): ("replicas", lambda reader: reader.whole_number("copies", "/replicas")),
    ("MIN", "IN", "SYNC"): (
        "min_in_sync",
        lambda reader: reader.whole_number("copies", "/min_in_sync"),
    ),
    ("PARTITIONS",): ("partitions", lambda reader: reader.whole_number("regions", "/partitions")),
    ("STORAGE", "PROFILES"): ("storage_profiles", _profiles),
    ("ON", "NODES"): ("node_filter", _nodes),
    ("PREFERRED", "ZONES"): ("preferred_zones", _preferred_zones),
    ("COMMENT",): ("comment", _comment),
}
_ALTERED: Clauses = {
    **_CLAUSES,
    ("MIN", "IN", "SYNC"): ("min_in_sync", _new_minimum),
    ("REASON",): ("reason", lambda reader: reader.text("a reason", "/reason")),
}

"""The fake data plane as JSON, piece by piece: what a tape keeps of it (tests/takeover/tapes.py).

A piece has only what is not as in a new one, so that a field that comes later changes no tape.
"""

from typing import Any, TypeAlias

from metasrv_base.errors import Refused
from metasrv_base.wire.node.orders import RegionColumn
from tests.fakes.datanodes.disk import Folder, Rows
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import Plane
from tests.fakes.datanodes.serving import Serving

Json: TypeAlias = Any
Picture: TypeAlias = dict[str, Json]
"""Every node, folder, lease, file of users, and region whose learners join, by `sort name`. None:
it is gone."""


def picture_of(plane: Plane) -> Picture:
    return {
        **{f"node {name}": _node(node) for name, node in plane.nodes.items()},
        **{f"folder {root}": _folder(one) for root, one in plane.storage.folders.items()},
        **{
            f"lease {node} {region}": [ends_at_ms, plane.leased[node, region]]
            for (node, region), ends_at_ms in plane.leases.items()
        },
        **{f"file {path}": sorted(rows) for path, rows in plane.brought.items()},
        **{
            f"quarantined {at_ms} {root}": _folder(one)
            for (root, at_ms), one in plane.storage.quarantined.items()
        },
        **{f"joins {region}": True for region in sorted(plane.joining)},
    }


def changes(old: Picture, new: Picture) -> Picture:
    """Returns the changes that turn *old* into *new*."""
    gone: Picture = {name: None for name in old if name not in new}
    return gone | {name: piece for name, piece in new.items() if old.get(name) != piece}


def restore(plane: Plane, picture: Picture) -> None:
    """Every piece of *picture* comes, or goes."""
    for name, piece in picture.items():
        sort, _, rest = name.partition(" ")
        match sort:
            case "node":
                plane.nodes[rest] = _as_node(plane, rest, piece)
            case "folder" if piece is None:
                del plane.storage.folders[rest]
            case "folder":
                plane.storage.folders[rest] = _as_folder(piece)
            case "quarantined":
                _quarantine(plane, rest, piece)
            case "lease":
                node, _, region = rest.partition(" ")
                _lease(plane, (node, region), piece)
            case "joins":
                plane.joining.add(rest)
            case _:
                plane.brought[rest] = frozenset(piece)


def _quarantine(plane: Plane, rest: str, piece: Json) -> None:
    at_ms, _, root = rest.partition(" ")
    if piece is None:
        del plane.storage.quarantined[root, int(at_ms)]
    else:
        plane.storage.quarantined[root, int(at_ms)] = _as_folder(piece)


def _lease(plane: Plane, held: tuple[str, str], piece: Json) -> None:
    if piece is None:
        del plane.leases[held], plane.leased[held]
    else:
        plane.leases[held], plane.leased[held] = piece


def _node(node: FakeNode) -> Json:
    assert all(type(error) is Refused for error in node.refuses.values())
    return _slim(
        dead=not node.alive,
        silent=node.silent,
        refuses={asked: error.code for asked, error in node.refuses.items()},
        term=node.term,
        serving={region: [one.epoch, one.root] for region, one in node.serving.items()},
        following={
            region: [one.epoch, one.root, one.copies_version]
            for region, one in node.following.items()
        },
        tombstones=sorted(node.tombstones),
    )


def _as_node(plane: Plane, name: str, piece: Json) -> FakeNode:
    return FakeNode(
        name,
        plane.storage,
        alive=not piece.get("dead", False),
        silent=piece.get("silent", False),
        refuses={asked: Refused(code) for asked, code in piece.get("refuses", {}).items()},
        term=piece.get("term", 0),
        serving={region: Serving(*held) for region, held in piece.get("serving", {}).items()},
        following={region: Serving(*held) for region, held in piece.get("following", {}).items()},
        tombstones=set(piece.get("tombstones", ())),
    )


def _folder(folder: Folder) -> Json:
    return _slim(
        fence=folder.fence,
        files=_sorted(folder.files),
        inputs=[[*where, sorted(rows)] for where, rows in folder.inputs.items()],
        attempts={name: _sorted(files) for name, files in folder.attempts.items()},
        adopted=list(folder.adopted),
        schema_version=folder.schema_version,
        schema_floor=folder.schema_floor,
        floor_version=folder.floor_version,
        dead_indexes=sorted(folder.dead_indexes),
        marks=dict(folder.marks),
        columns=[one.model_dump(mode="json", exclude_defaults=True) for one in folder.columns],
        entries={str(index): sorted(held) for index, held in folder.entries.items()},
    )


def _as_folder(piece: Json) -> Folder:
    known = dict(piece)
    known["files"] = _rows(known.get("files", {}))
    known["inputs"] = {(at, name): frozenset(rows) for at, name, rows in known.get("inputs", ())}
    known["attempts"] = {name: _rows(files) for name, files in known.get("attempts", {}).items()}
    known["dead_indexes"] = frozenset(known.get("dead_indexes", ()))
    columns = known.get("columns", ())
    known["columns"] = tuple(RegionColumn.model_validate(one) for one in columns)
    known["entries"] = {int(i): frozenset(rows) for i, rows in known.get("entries", {}).items()}
    return Folder(**known)


def _slim(**fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}


def _sorted(files: dict[str, Rows]) -> dict[str, list[str]]:
    return {name: sorted(rows) for name, rows in files.items()}


def _rows(files: dict[str, list[str]]) -> dict[str, Rows]:
    return {name: frozenset(rows) for name, rows in files.items()}

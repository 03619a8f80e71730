"""`playground.json`: what runs where, for tests, checkers and people. A public format."""

import os
from collections.abc import Mapping
from pathlib import Path

from metasrv.playground.child import Child
from metasrv_base.wire.model import WireModel

NAME = "playground.json"


class DatanodeEntry(WireModel):
    url: str
    pid: int
    root: str


class FrontendEntry(WireModel):
    url: str
    pid: int


class Pids(WireModel):
    metasrv: dict[str, int]
    datanode: dict[str, int]
    frontend: dict[str, int]
    etcd: int | None
    """Null: it is not the playground's own."""


class PlaygroundBody(WireModel):
    etcd: list[str]
    key_prefix: str
    metasrv: list[str]
    datanodes: dict[str, DatanodeEntry]
    frontends: dict[str, FrontendEntry]
    pids: Pids
    restart: dict[str, list[str]]
    """The command line that starts a program again, by its id."""


def document_of(
    children: Mapping[str, Child], etcd: tuple[str, ...], key_prefix: str
) -> PlaygroundBody:
    programs = [child.program for child in children.values()]
    pids = {
        role: {program.id: children[program.id].pid for program in programs if program.role == role}
        for role in ("metasrv", "datanode", "frontend")
    }
    return PlaygroundBody(
        etcd=list(etcd),
        key_prefix=key_prefix,
        metasrv=[program.url for program in programs if program.role == "metasrv"],
        datanodes={
            program.id: DatanodeEntry(
                url=program.url, pid=children[program.id].pid, root=str(program.root)
            )
            for program in programs
            if program.role == "datanode"
        },
        frontends={
            program.id: FrontendEntry(url=program.url, pid=children[program.id].pid)
            for program in programs
            if program.role == "frontend"
        },
        pids=Pids(
            metasrv=pids["metasrv"],
            datanode=pids["datanode"],
            frontend=pids["frontend"],
            etcd=children["etcd"].pid if "etcd" in children else None,
        ),
        restart={program.id: list(program.argv) for program in programs},
    )


def write_document(folder: Path, document: PlaygroundBody) -> None:
    """Renamed into place: who sees it sees all of it."""
    unfinished = folder / f".{NAME}.{os.getpid()}"
    unfinished.write_text(document.model_dump_json(indent=2) + "\n")
    unfinished.replace(folder / NAME)

"""A region with copies on datanodes that are processes, ordered by hand as metasrv would."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from metasrv_base.wire.node.batches import Rows
from metasrv_base.wire.node.copies import CopyStanding, OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import CreateRegion, HandOver, OpenRegion, Order
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.node_conformance.node import Node, Write, new_region


@dataclass
class CopiedRegion:
    """The route of one region, and its nodes by id. The first one leads at epoch 1."""

    nodes: dict[str, Node]
    roles: dict[str, CopyStanding]
    min_in_sync: int = 1
    region: int = field(default_factory=new_region)
    epoch: int = 1
    version: int = 1
    eligible: set[str] = field(default_factory=set)
    """Learners that may lead."""
    gone: set[str] = field(default_factory=set)
    """Nodes that answer nothing."""
    schema_version: int = 1
    """The version of writes and reads."""

    @property
    def leader(self) -> Node:
        (name,) = (name for name, role in self.roles.items() if role == "leader")
        return self.nodes[name]

    def copies(self) -> RegionCopies:
        order = sorted(self.roles, key=lambda name: self.roles[name] != "leader")
        members = [
            OrderedCopy(
                node=name,
                root=self.nodes[name].root_of(self.region),
                role=self.roles[name],
                eligible=name in self.eligible,
                address=self.nodes[name].url,
            )
            for name in order
        ]
        return RegionCopies(version=self.version, min_in_sync=self.min_in_sync, members=members)

    def create(self) -> None:
        for name in self.roles:
            self.take(name, self.create_order(name))

    def create_order(self, name: str) -> CreateRegion:
        role = "leader" if self.roles[name] == "leader" else "copy"
        changes = {"role": role, "copies": self.copies()}
        return self.nodes[name].create_order(self.region, self.epoch, **changes)

    def open_order(self, name: str) -> OpenRegion:
        role = "leader" if self.roles[name] == "leader" else "copy"
        changes = {"role": role, "copies": self.copies()}
        return self.nodes[name].open_order(self.region, self.epoch, **changes)

    def take(self, name: str, order: Order) -> None:
        (result,) = self.nodes[name].order(order).results
        assert result.error is None, result.error

    def promote(self, name: str) -> None:
        """The former leader becomes a learner. Nodes that were `gone` are not told."""
        roles = {each: "learner" if role == "leader" else role for each, role in self.roles.items()}
        self.roles = {**roles, name: "leader"}
        self.epoch, self.version = self.epoch + 1, self.version + 1
        self.tell(*(each for each in self.roles if each not in self.gone))

    def hand_over_order(self, phase: str, to: str = "", hold_ms: int = 0, at: str = "") -> HandOver:
        """An order to the leader, or to the node *at*."""
        node = self.nodes[at] if at else self.leader
        copy = {"node": to, "root": self.nodes[to].root_of(self.region)} if to else {}
        return HandOver.model_validate(
            {
                "number": node.next_number(),
                "region_id": str(self.region),
                "epoch": self.epoch,
                "phase": phase,
                "hold_ms": hold_ms,
                **copy,
            }
        )

    def name_next(self, name: str) -> None:
        """The route of a planned switch: the former leader stays in the set. Nobody is told."""
        roles = {each: "in-sync" if role == "leader" else role for each, role in self.roles.items()}
        self.roles = {**roles, name: "leader"}
        self.epoch, self.version = self.epoch + 1, self.version + 1

    def change(self, **roles: CopyStanding | None) -> None:
        """A new version of the route, with other roles; None: the copy is no more."""
        news = {name.replace("_", "-"): role for name, role in roles.items()}
        self.roles = {name: role for name, role in {**self.roles, **news}.items() if role}
        self.version += 1

    def tell(self, *names: str) -> None:
        for name in sorted(names, key=lambda name: self.roles[name] != "leader"):
            self.take(name, self.open_order(name))

    def write(self, number: int) -> None:
        """One row, acknowledged; sent again while the leader is not ready."""
        node = self.leader

        def is_done() -> bool:
            answer = self.post(number)
            assert answer.status_code == 200 or answer.json()["code"] == "not-ready", answer.text
            return answer.status_code == 200

        until(node, is_done)

    def _head(self) -> dict[str, int]:
        return {"epoch": self.epoch, "schema_version": self.schema_version}

    def post(self, number: int) -> httpx.Response:
        """Sends one row to the leader, once."""
        row = Write(f"k{number}".encode(), number)
        return self.leader.post_batch(self.region, [row], f"s{number}", **self._head())

    def refused(self, number: int) -> str:
        """The code of the problem that one row is answered."""
        answer = self.post(number)
        assert answer.status_code >= 400
        return str(answer.json()["code"])

    def rows(self) -> set[int]:
        """The values of all rows, read at the leader once it is ready."""
        node, answers = self.leader, list[httpx.Response]()
        head: dict[str, Any] = self._head()

        def is_read() -> bool:
            answers.append(node.post(self.region, "scan", **head))
            assert answers[-1].status_code in (200, 503), answers[-1].text
            return answers[-1].status_code == 200

        until(node, is_read)
        rows = Rows.model_validate_json(answers[-1].content).rows
        return {int(str(row.values["1"])) for row in rows}


def lost(region: CopiedRegion, process: DatanodeProcess) -> None:
    """A node is killed, and its disk is gone."""
    process.kill()
    shutil.rmtree(process.root)
    region.gone.add(process.node_id)


def until(node: Node, is_done: Callable[[], bool]) -> None:
    """Asks again after each heartbeat that the node's metasrv hears."""
    for _ in range(300):
        if is_done():
            return
        beats = len(node.metasrv.heard)
        node.metasrv.wait_for(lambda: len(node.metasrv.heard) > beats)  # noqa: B023
    raise AssertionError("the node did not do it in time")


def started(
    start: Callable[..., tuple[DatanodeProcess, Node]], names: Sequence[str]
) -> tuple[dict[str, DatanodeProcess], dict[str, Node]]:
    both = {name: start(name) for name in names}
    processes = {name: process for name, (process, _) in both.items()}
    return processes, {name: node for name, (_, node) in both.items()}

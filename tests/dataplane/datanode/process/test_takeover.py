"""A region that moved: opened over a dead node's root, brought over, adopted, let go."""

import shutil
from pathlib import Path

import pytest

from metasrv_base.wire.node.inputs import Borrowed
from metasrv_base.wire.node.orders import AdoptFiles, DataFile, DiscardRoot, Order
from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.loads import keys_of
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process

ATTEMPT = "attempts/p-1"


def code(node: Node, order: Order) -> str | None:
    error = node.order(order).results[0].error
    return None if error is None else error.code


def borrowed_by(node: Node, region: int) -> Borrowed:
    answer = node.http.get(f"{node.url}/node/v1/regions/{region}/borrowed")
    return Borrowed.model_validate_json(answer.content)


def bring_over(borrowed: Borrowed) -> list[DataFile]:
    """Copies immutable files as the job does: byte for byte, under the attempt's folder."""
    folder = Path(borrowed.root) / ATTEMPT
    folder.mkdir(parents=True)
    files = []
    for one in borrowed.files:
        name = f"{ATTEMPT}/{Path(one.file.name).name}"
        shutil.copyfile(Path(one.root) / one.file.name, Path(borrowed.root) / name)
        files.append(one.file.model_copy(update={"name": name}))
    return files


def adopt(node: Node, region: int, files: list[DataFile]) -> AdoptFiles:
    return AdoptFiles(
        number=node.next_number(),
        region_id=str(region),
        epoch=2,
        procedure="p",
        attempt=ATTEMPT,
        files=files,
    )


def discard(node: Node, region: int, root: str) -> DiscardRoot:
    return DiscardRoot(number=node.next_number(), region_id=str(region), epoch=2, root=root)


def test_given_a_killed_node_when_its_region_moves_then_no_row_needs_the_old_disk(
    start_node: StartNode,
) -> None:
    process, first = start_node("dn-1")
    _, second = start_node("dn-2")
    region = first.created()
    first.write(region, [Write(b"a", 1), Write(b"b", 2)], "s1")
    first.http.post(f"{first.url}/node/v1/regions/{region}/flush").raise_for_status()
    process.kill()
    old = first.root_of(region)

    assert code(second, second.open_order(region, epoch=2, borrows=[old])) is None
    second.write(region, [Write(b"c", 3)], "s2", epoch=2)
    assert code(second, discard(second, region, old)) == "action-not-allowed"
    files = bring_over(borrowed_by(second, region))
    assert code(second, adopt(second, region, files)) is None
    assert code(second, adopt(second, region, files)) is None  # once more is done already
    assert borrowed_by(second, region).files == []
    assert code(second, discard(second, region, old)) is None

    assert not Path(old).exists()
    assert keys_of(second, region, epoch=2) == {b"a", b"b", b"c"}
    assert code(second, second.close_order(region, epoch=2)) is None
    assert code(second, second.open_order(region, epoch=3)) is None
    assert keys_of(second, region, epoch=3) == {b"a", b"b", b"c"}


def test_given_a_folder_of_others_when_told_to_delete_it_then_it_stays(
    start_node: StartNode, tmp_path: Path
) -> None:
    _, node = start_node()
    region, other = node.created(), node.created()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")

    wrong = [str(precious), node.root_of(other), node.root, "/", "relative", f"{node.root}/../x"]
    orders = [discard(node, region, root).model_copy(update={"epoch": 1}) for root in wrong]
    codes = [code(node, order) for order in orders]
    own = discard(node, region, node.root_of(region)).model_copy(update={"epoch": 1})

    assert codes == ["invalid-request"] * len(wrong)
    assert code(node, own) == "action-not-allowed"
    assert (precious / "file").exists()
    assert Path(node.root_of(other)).exists()


def test_given_files_that_are_not_there_when_adopted_then_refused_and_nothing_changes(
    start_node: StartNode,
) -> None:
    process, first = start_node("dn-1")
    _, second = start_node("dn-2")
    region = first.created()
    first.write(region, [Write(b"a", 1)], "s1")
    first.http.post(f"{first.url}/node/v1/regions/{region}/flush").raise_for_status()
    process.kill()
    borrows = [first.root_of(region)]
    assert code(second, second.open_order(region, epoch=2, borrows=borrows)) is None

    files = bring_over(borrowed_by(second, region))
    shutil.rmtree(Path(second.root_of(region)) / ATTEMPT)

    assert code(second, adopt(second, region, files)) == "invalid-request"
    assert keys_of(second, region, epoch=2) == {b"a"}
    assert len(borrowed_by(second, region).files) == 1

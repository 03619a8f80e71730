"""Orders as docs/protocols.md P3 has them, on a real node."""

import pytest

from metasrv_base.wire.node.copies import OrderedCopy, RegionCopies
from metasrv_base.wire.node.orders import OriginColumn, RegionColumn
from tests.node_conformance.node import COLUMNS, Node, Write, new_region

pytestmark = pytest.mark.process


def code(node: Node, *orders: object) -> str | None:
    """Returns the code of the last order's result."""
    error = node.order(*orders).results[-1].error  # type: ignore[arg-type]
    return None if error is None else error.code


def test_given_a_node_when_ordered_to_create_then_it_serves_at_once(node: Node) -> None:
    region = node.created()

    assert node.write(region, [Write(b"a", 1)], "s1").rows == 1


def test_given_regions_when_the_node_is_asked_then_it_says_state_epoch_and_row_version(
    node: Node,
) -> None:
    region = node.created()
    (before,) = (stat for stat in node.stats() if stat["region_id"] == str(region))
    node.write(region, [Write(b"a", 1)], "s1")
    (after,) = (stat for stat in node.stats() if stat["region_id"] == str(region))

    assert (after["state"], after["epoch"], after["rows"]) == ("open", 1, 1)
    assert after["version"] > before["version"]

    node.order(node.close_order(region, epoch=1))
    assert str(region) not in {stat["region_id"] for stat in node.stats()}


def test_given_a_region_when_the_node_is_asked_then_it_says_its_role_and_if_it_takes_writes(
    node: Node,
) -> None:
    """A lease that nobody renews is over, and nothing is written any more."""
    region = node.created()
    assert (node.body(region)["role"], node.body(region)["takes_writes"]) == ("leader", True)

    node.metasrv.told.grants_all = False
    other = node.created(lease=node.metasrv.lease_for(node.node_id, lease_ms=1))
    (body,) = (body for body in node.bodies() if body["stat"]["region_id"] == str(other))
    assert (body["role"], body["takes_writes"]) == ("leader", False)

    node.metasrv.told.grants_all = True
    heard = len(node.metasrv.heard)
    node.metasrv.wait_for(lambda: len(node.metasrv.heard) >= heard + 3)
    assert node.body(other)["takes_writes"]


def test_given_many_creates_in_one_request_when_answered_then_each_has_its_result(
    node: Node,
) -> None:
    orders = [node.create_order(new_region()) for _ in range(20)]

    results = node.order(*orders).results

    assert [result.number for result in results] == [order.number for order in orders]
    assert all(result.error is None for result in results)


def test_given_a_repeat_of_an_order_when_taken_then_the_stored_answer_is_given(
    node: Node,
) -> None:
    region = node.created()
    bad = node.open_order(region, epoch=1, root="not/absolute")

    first = node.order(bad).results[0]
    again = node.order(bad.model_copy(update={"root": node.root_of(region)})).results[0]

    assert first.error is not None
    assert again == first


def test_given_a_lower_order_number_when_taken_then_it_is_not_done(node: Node) -> None:
    region = new_region()
    early = node.create_order(region)
    assert code(node, node.create_order(region)) is None

    assert code(node, early) == "outcome-unknown"


def test_given_two_orders_of_a_region_when_they_come_again_then_the_first_may_have_been_done(
    node: Node,
) -> None:
    region = node.created()
    both = node.close_order(region, epoch=1), node.open_order(region, epoch=2)
    assert [result.error for result in node.order(*both).results] == [None, None]

    first, second = node.order(*both).results

    assert first.error is not None
    assert first.error.code == "outcome-unknown"
    assert second.error is None


def test_given_a_lower_term_when_taken_then_the_request_is_refused(node: Node) -> None:
    node.metasrv.told.term += 1
    node.created()

    answer = node.post_orders(node.create_order(new_region()), term=node.metasrv.told.term - 1)

    assert (answer.status_code, answer.json()["code"]) == (409, "stale-epoch")
    assert answer.json()["facts"]["current_term"] == node.metasrv.told.term


@pytest.mark.parametrize(
    ("term", "status"), [(10**30, 400), (1 << 63, 422), ((1 << 63) - 1, 503), (-1, 422)]
)
def test_given_a_term_out_of_bounds_when_ordered_then_refused_and_the_leader_is_not_shut_out(
    node: Node, term: int, status: int
) -> None:
    """A term within 64 bits is taken once a metasrv server has told the node of it."""
    region = node.created()

    claimed = node.post_orders(node.close_order(region, epoch=1), term=term)

    assert claimed.status_code == status, claimed.text
    assert code(node, node.close_order(region, epoch=1)) is None


def test_given_another_cluster_when_ordered_then_wrong_cluster(node: Node) -> None:
    answer = node.post_orders(node.create_order(new_region()), cluster_id="another")

    assert (answer.status_code, answer.json()["code"]) == (409, "wrong-cluster")


def test_given_another_node_when_ordered_then_it_is_refused(node: Node) -> None:
    answer = node.post_orders(node.create_order(new_region()), node_id="dn-other")

    assert (answer.status_code, answer.json()["code"]) == (409, "wrong-cluster")


def test_given_a_dropped_region_when_created_or_opened_then_never_again(node: Node) -> None:
    region = node.created()
    assert code(node, node.drop_order(region, epoch=1)) is None

    assert code(node, node.create_order(region, epoch=2)) == "action-not-allowed"
    assert code(node, node.open_order(region, epoch=2)) == "action-not-allowed"
    node.metasrv.told.term += 1
    assert code(node, node.create_order(region, epoch=3)) == "action-not-allowed"


def test_given_a_region_that_never_was_when_dropped_or_closed_then_it_is_done(
    node: Node,
) -> None:
    region = new_region()

    assert code(node, node.close_order(region, epoch=1)) is None
    assert code(node, node.drop_order(region, epoch=1)) is None


def test_given_a_closed_region_when_opened_then_its_rows_are_there(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(b"a", 1), Write(b"b", 2)], "s1")
    assert code(node, node.close_order(region, epoch=1)) is None
    assert node.post(region, "scan").status_code == 404

    assert code(node, node.open_order(region, epoch=2)) is None

    assert [row.key for row in node.scan(region, epoch=2).rows] == [b"a".hex(), b"b".hex()]


def test_given_an_open_at_a_lower_epoch_when_taken_then_stale(node: Node) -> None:
    region = node.created(epoch=3)

    assert code(node, node.open_order(region, epoch=2)) == "stale-epoch"
    assert code(node, node.close_order(region, epoch=2)) == "stale-epoch"


def test_given_an_open_region_when_begun_anew_then_it_is_empty_and_the_old_epoch_is_over(
    node: Node,
) -> None:
    region = node.created()
    old, new = node.root_of(region), f"{node.root_of(region)}-2"
    node.write(region, [Write(b"a", 1)], "s1")

    anew = node.create_order(region, epoch=2, root=new, replaces=[old])
    assert code(node, anew) is None
    late = node.post_batch(region, [Write(b"b", 1)], "s2", epoch=1)
    node.write(region, [Write(b"c", 1)], "s3", epoch=2)
    again = node.write(region, [Write(b"a", 1)], "s1", epoch=2)

    assert again.repeated, "a copy that comes late brings no row back"
    assert (late.status_code, late.json()["code"]) == (409, "stale-epoch")
    assert [row.key for row in node.scan(region, epoch=2).rows] == [b"c".hex()]
    assert code(node, node.discard_order(region, epoch=2, root=new)) == "action-not-allowed"
    assert code(node, node.discard_order(region, epoch=2, root=old)) is None
    assert [row.key for row in node.scan(region, epoch=2).rows] == [b"c".hex()]


def test_given_no_files_when_ordered_to_open_then_lost_and_never_empty(node: Node) -> None:
    region = new_region()

    assert code(node, node.open_order(region, epoch=1)) == "region-lost"

    answer = node.post_batch(region, [Write(b"a", 1)], "s1")
    assert (answer.status_code, answer.json()["code"]) == (503, "region-lost")
    node.metasrv.wait_for(lambda: node.metasrv.reports(node.node_id, str(region)) == "lost")


def test_given_a_region_when_its_inputs_are_listed_then_nothing_is_borrowed(node: Node) -> None:
    region = node.created()

    answer = node.http.get(f"{node.url}/node/v1/regions/{region}/borrowed").json()

    assert (answer["files"], answer["segments"]) == ([], [])
    assert answer["root"] == node.root_of(region)


def test_given_an_instruction_in_a_heartbeat_when_answered_then_it_is_carried_out(
    node: Node,
) -> None:
    region = new_region()

    node.metasrv.told.instructions = [node.create_order(region)]

    node.metasrv.wait_for(lambda: node.metasrv.reports(node.node_id, str(region)) == "open")


def test_given_a_floor_when_older_writes_and_reads_come_then_they_are_stale_and_newer_are_done(
    node: Node,
) -> None:
    region = node.created()
    before = node.write(region, [Write(b"a", 1)], "s1")

    (told,) = node.order(node.schema_order(region, version=2)).results

    assert (told.error, told.floor_version) == (None, before.version)
    old = [
        node.post_batch(region, [Write(b"b", 2)], "s2"),
        node.post(region, "get", keys=["61"]),
        node.post(region, "scan"),
        node.post(region, "checksum"),
    ]
    assert [(one.status_code, one.json()["code"]) for one in old] == [
        (409, "schema-version-stale")
    ] * 4
    node.write(region, [Write(b"b", 2)], "s3", schema_version=2)
    assert len(node.scan(region, schema_version=2).rows) == 2
    early = node.post(region, "scan", schema_version=3)
    assert (early.status_code, early.json()["code"]) == (503, "not-ready")


def test_given_a_schema_order_when_repeated_then_its_answer_is_the_stored_one(node: Node) -> None:
    region = node.created()
    node.write(region, [Write(b"a", 1)], "s1")
    order = node.schema_order(region, version=2, mark="reorg")

    first = node.order(order).results
    node.write(region, [Write(b"b", 2)], "s2", schema_version=2)

    assert node.order(order).results == first
    assert code(node, node.schema_order(region, version=2, schema_floor=3)) == "invalid-request"
    assert code(node, node.schema_order(region, version=3, epoch=2)) == "stale-epoch"


def test_given_a_floor_when_the_region_is_closed_and_opened_lower_then_it_stands(
    node: Node,
) -> None:
    region = node.created()
    assert code(node, node.schema_order(region, version=4)) is None

    assert code(node, node.close_order(region, epoch=1), node.open_order(region, epoch=2)) is None

    answer = node.post(region, "scan", schema_version=3, epoch=2)
    assert (answer.status_code, answer.json()["code"]) == (409, "schema-version-stale")


def test_given_a_column_in_the_place_of_another_when_read_then_rows_of_before_are_converted(
    node: Node,
) -> None:
    region = node.created()
    node.write(region, [Write(b"a", 1)], "s1")
    text = RegionColumn(
        id=3, type="string", nullable=False, origin_columns=[OriginColumn(id=1, type="int64")]
    )
    now = [COLUMNS[1], text]

    told = code(node, node.schema_order(region, version=2, schema_floor=1, columns=now))
    node.write(region, [Write(b"b", 2)], "s2")
    before = node.scan(region, schema_version=2).rows
    close = node.close_order(region, epoch=1)
    again = code(node, close, node.open_order(region, epoch=2, schema_version=2, columns=now))

    assert (told, again) == (None, None)
    assert [row.values for row in before] == [{"2": "v1", "3": "1"}, {"2": "v2", "3": "2"}]
    assert node.scan(region, schema_version=2, epoch=2).rows == before


def test_given_an_order_whose_root_has_another_role_in_its_copies_then_refused(
    node: Node,
) -> None:
    region = new_region()
    members = [
        OrderedCopy(node=node.node_id, root=node.root_of(region), role="leader"),
        OrderedCopy(node="dn-2", root="/dn-2/r", role="in-sync", address="http://dn-2"),
    ]
    copies = RegionCopies(version=1, min_in_sync=2, members=members)
    others = copies.model_copy(update={"members": members[1:]})

    assert code(node, node.create_order(region, role="copy")) == "invalid-request"
    assert code(node, node.create_order(region, role="copy", copies=copies)) == "invalid-request"
    assert code(node, node.create_order(region, copies=others)) == "invalid-request"
    memory = node.create_order(region, copies=copies, engine="memory")
    assert code(node, memory) == "unsupported"
    assert str(region) not in {stat["region_id"] for stat in node.stats()}


def test_given_the_folder_of_a_copy_that_has_left_when_discarded_then_it_goes_unless_in_use(
    node: Node,
) -> None:
    region = node.created()
    old, new = node.root_of(region), f"{node.root_of(region)}-2"
    assert code(node, node.discard_order(region, 1, old, left=True)) == "action-not-allowed"
    assert code(node, node.create_order(region, epoch=2, root=new, replaces=[old])) is None

    assert code(node, node.discard_order(region, 2, old, left=True)) is None
    assert code(node, node.discard_order(region, 2, new, left=True)) == "action-not-allowed"
    assert code(node, node.close_order(region, 2)) is None
    assert code(node, node.discard_order(region, 2, new, left=True)) is None
    assert code(node, node.open_order(region, 3, root=new)) == "region-lost"

"""`POST T/truncate`: all rows of a table go at once, and its definition stays."""

from metasrv_base.wire.node.orders import CreateRegion, DiscardRoot, OpenRegion
from tests.metasrv.api.rig import TABLES, leader

WAIT = {"Prefer": "wait=10"}
TRUNCATE = f"{TABLES}/t/truncate"
FOUR = {"by": "hash", "columns": ["id"], "count": 4}


async def test_given_a_table_when_truncated_then_every_region_begins_anew() -> None:
    async with leader() as one:
        made = await one.make(partition=FOUR, options={"app.x": "30d"})
        before = (await one.client.get(f"{TABLES}/t/route")).json()["regions"]
        one.nodes.asked.clear()

        answer = await one.client.post(TRUNCATE, headers=WAIT)

        assert answer.status_code == 200, answer.text
        assert answer.headers["catalog-version"] == str(one.version)
        assert answer.headers["etag"] == f'"t{made["id"]}-1"'
        moved = ("regions", "catalog_version")
        same = {name: fact for name, fact in made.items() if name not in moved}
        assert same.items() <= answer.json().items(), "its definition is the same"
        after = (await one.client.get(f"{TABLES}/t/route")).json()["regions"]
        assert [(now["epoch"], now["state"]) for now in after] == [(2, "open")] * 4
        assert [now["leader"] for now in after] == [then["leader"] for then in before]
        ops = [type(order) for _, order in one.nodes.asked]
        assert ops == [CreateRegion] * 4 + [OpenRegion] * 4 + [DiscardRoot] * 4


async def test_given_a_truncate_when_ordered_then_the_old_roots_are_fenced_and_then_deleted() -> (
    None
):
    async with leader() as one:
        await one.make()
        (created,) = [order for _, order in one.nodes.asked if isinstance(order, CreateRegion)]

        await one.client.post(TRUNCATE, headers=WAIT)

        told = [order for _, order in one.nodes.asked]
        (anew,) = [o for o in told if isinstance(o, CreateRegion) and o.epoch == 2]
        (discarded,) = [order for order in told if isinstance(order, DiscardRoot)]
        assert anew.replaces == [created.root] == [discarded.root]
        assert anew.root != created.root


async def test_given_the_plan_of_a_truncate_when_done_next_then_it_is_what_was_done() -> None:
    async with leader() as one:
        await one.make(partition=FOUR)
        one.nodes.asked.clear()
        revision = one.kv.revision

        plan = (await one.client.post(TRUNCATE + "?dry_run=true")).json()
        assert one.kv.revision == revision
        assert one.nodes.asked == []
        await one.client.post(TRUNCATE, headers=WAIT)

        assert plan["complete"]
        assert plan["last_cancellable_step"] == "cut"
        orders = [order for step in plan["steps"] for order in step["orders"]]
        told = [(node, order.op, order.region_id) for node, order in one.nodes.asked]
        assert sorted((o["node"], o["op"], o["region_id"]) for o in orders) == sorted(told)


async def test_given_a_key_that_is_sent_again_then_rows_written_meanwhile_stay() -> None:
    async with leader() as one:
        await one.make()
        key = {**WAIT, "Idempotency-Key": "once"}
        first = await one.client.post(TRUNCATE, headers=key)

        again = await one.client.post(TRUNCATE, headers=key)

        assert (first.status_code, again.status_code) == (200, 200)
        assert again.headers["idempotency-replayed"] == "true"
        (region,) = (await one.client.get(f"{TABLES}/t/route")).json()["regions"]
        assert region["epoch"] == 2


async def test_given_a_table_that_was_changed_meanwhile_then_nothing_is_truncated() -> None:
    async with leader() as one:
        made = await one.make()
        stale = {**WAIT, "If-Match": f'"t{made["id"]}-7"'}

        answer = await one.client.post(TRUNCATE, headers=stale)

        assert (answer.status_code, answer.json()["code"]) == (412, "version-mismatch")
        (region,) = (await one.client.get(f"{TABLES}/t/route")).json()["regions"]
        assert region["epoch"] == 1


async def test_given_a_body_that_asks_for_less_then_all_rows_stay() -> None:
    async with leader() as one:
        await one.make()

        some = await one.client.post(TRUNCATE, json={"where": "id < 5"}, headers=WAIT)
        none = await one.client.post(f"{TABLES}/absent/truncate", headers=WAIT)

        assert (some.status_code, some.json()["code"]) == (422, "invalid-request")
        assert (none.status_code, none.json()["code"]) == (404, "table-not-found")
        (region,) = (await one.client.get(f"{TABLES}/t/route")).json()["regions"]
        assert region["epoch"] == 1

"""Every log line that a request has caused bears its id, whichever task wrote it."""

from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import TABLES, leader, spec


async def test_given_two_requests_when_one_waits_for_the_other_then_each_line_has_its_own_id() -> (
    None
):
    """The second procedure is begun by the end of the first, in the task of the first."""
    async with leader() as one:
        await one.make()
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        with capture_logs(processors=[merge_contextvars]) as told:
            await one.client.delete(f"{TABLES}/t", headers={"X-Request-Id": "r-1"})
            await one.nodes.reached.wait()
            second = {"X-Request-Id": "r-2"}
            waiting = (await one.client.post(TABLES, json=spec(), headers=second)).json()
            one.nodes.gate.set()
            await end_of(one, f"/v1/procedures/{waiting['id']}")

        ended = [line for line in told if line["event"] == "procedure_ended"]
        assert [(line["kind"], line["request_id"]) for line in ended] == [
            ("drop_table", "r-1"),
            ("create_table", "r-2"),
        ]


async def test_given_a_route_that_breaks_then_its_line_names_the_request_that_was_answered() -> (
    None
):
    async with leader() as one:
        await one.make()
        one.state.addresses = None  # type: ignore[assignment]
        with capture_logs(processors=[merge_contextvars]) as told:
            answer = await one.client.get(f"{TABLES}/t", headers={"X-Request-Id": "r-3"})
        metrics = (await one.client.get("/metrics")).text

        (line,) = [line for line in told if line["event"] == "request_failed"]
        assert answer.status_code == 500
        assert answer.headers["x-request-id"] == "r-3"
        assert line["request_id"] == answer.json()["request_id"] == "r-3"
        assert line["exc_info"]
        assert 'status="500"} 1.0' in metrics
        assert 'status="0"' not in metrics

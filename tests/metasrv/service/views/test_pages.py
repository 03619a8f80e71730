"""Pages, files and moments of a view, and the refusals of what it is asked wrongly."""

import asyncio
import io

import httpx
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metasrv.api.http.forward import is_the_leaders
from metasrv.service.state.stream_places import VIEW_STREAMS_MAX
from metasrv.service.views.views import VIEWS as ALL
from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.service.views.everything import VIEWS, WAIT, everything, page, rows

ARROW = "application/vnd.apache.arrow.stream"


def named(found: list[dict[str, object]]) -> list[object]:
    return [row["table_name"] for row in found]


async def test_given_no_view_named_then_all_are_listed_with_their_columns() -> None:
    async with leader() as one:
        listed = (await one.client.get(VIEWS)).json()["views"]
        for view in listed:
            body = await page(one, view["name"])
            assert body["columns"] == [column["name"] for column in view["columns"]]
    assert [view["name"] for view in listed] == sorted(view["name"] for view in listed)
    assert len(listed) == 17


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_given_pages_of_any_size_then_they_are_the_whole(size: int) -> None:
    async with everything() as one:
        for view in ("tables", "columns", "regions", "dropped_tables", "procedures", "versions"):
            assert await rows(one, view, page_size=size) == await rows(one, view, page_size=1_000)
        for view in ("schemata", "settings"):
            assert await rows(one, view, page_size=size) == await rows(one, view, page_size=1_000)


async def test_given_ddl_between_pages_then_every_page_is_of_the_first_ones_version() -> None:
    async with everything() as one:
        whole = await rows(one, "columns")
        first = await page(one, "columns", page_size=4)
        found, token = list(first["rows"]), first["next_page_token"]
        for number in range(20):
            if token is None:
                break
            await one.make(f"new{number}")
            if number == 1:
                await one.client.delete(f"{TABLES}/plain", headers=WAIT)
            body = await page(one, "columns", page_size=4, page_token=token)
            assert body["catalog_version"] == first["catalog_version"] < one.version
            found, token = [*found, *body["rows"]], body["next_page_token"]

    assert [dict(zip(first["columns"], row, strict=True)) for row in found] == whole


async def test_given_as_of_then_rows_are_of_that_version() -> None:
    async with leader() as one:
        await one.make("a")
        then = one.version
        await one.make("b")
        await one.client.delete(f"{TABLES}/a", headers=WAIT)

        old = await page(one, "tables", as_of=f"version:{then}")
        dropped = await page(one, "dropped_tables", as_of=f"version:{then}")
        file = await one.client.get(f"{VIEWS}/tables?format=csv&as_of=version:{then}")

        assert (len(old["rows"]), old["catalog_version"]) == (1, then)
        assert (old["rows"][0][2], dropped["rows"]) == ("a", [])
        assert file.headers["catalog-version"] == str(then)
        assert named(await rows(one, "tables")) == ["b"]
        now = await one.client.get(f"{VIEWS}/nodes?as_of=version:{then}")
        assert (now.status_code, now.json()["code"]) == (422, "invalid-request")


async def test_given_a_filter_then_rows_are_those_of_which_it_is_true() -> None:
    async with everything() as one:
        assert (
            named(await rows(one, "tables", where="region_count > 1")) == ["hashed", "ranged"][::-1]
        )
        comment = "table_comment is not null and table_comment <> 'x'"
        assert named(await rows(one, "tables", where=comment)) == ["plain"]
        assert named(await rows(one, "tables", where="table_comment <> 'x'")) == ["plain"]
        late = "created_at > '2100-01-01T00:00:00Z'"
        assert await rows(one, "tables", where=late) == []
        assert len(await rows(one, "tables", where=f"not ({late})")) == 5
        assert await rows(one, "tables", where="1 = 2") == []
        assert len(await rows(one, "tables", where="true")) == 5
        body = await page(one, "tables", columns="table_name,version", where="table_id = 1026")
        assert body["columns"] == ["table_name", "version"]
        assert all(len(row) == 2 for row in body["rows"])


CONDITIONS = st.sampled_from(
    [
        "table_name = 'plain'",
        "'plain' = table_name",
        "table_name in ('plain', 'ranged', 'no')",
        "table_catalog = 'acme'",
        "table_schema = 'sales'",
        "table_schema in ('public', 'sales')",
        "table_id in (1031, 1032, 1033, 1034, 1035, 1036)",
        "table_id = 1032",
        "table_id = 1e9",
        "region_id is not null",
        "table_name = 'plain' or table_id > 0",
        "not table_name = 'plain'",
        "table_name = 'plain' and table_name = 'ranged'",
        "table_name < 'h'",
    ]
)


@given(parts=st.lists(CONDITIONS, min_size=1, max_size=3), view=st.sampled_from(["partitions"]))
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
def _checked(one: "Answers", parts: list[str], view: str) -> None:
    one.check(view, " and ".join(f"({part})" for part in parts))


class Answers:
    """Asks a server from a thread, for a property that is not async."""

    def __init__(self, one: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.one, self.loop = one, loop

    def check(self, view: str, where: str) -> None:
        async def both() -> tuple[object, object]:
            narrowed = await rows(self.one, view, where=where)
            # `or 1 = 2` tells the scope nothing
            whole = await rows(self.one, view, where=f"({where}) or 1 = 2")
            return narrowed, whole

        asked = asyncio.run_coroutine_threadsafe(both(), self.loop)
        narrowed, whole = asked.result(120)
        assert narrowed == whole, where


async def test_given_any_filter_then_what_saves_work_changes_no_answer() -> None:
    async with everything() as one:
        await asyncio.to_thread(_checked, Answers(one, asyncio.get_running_loop()))


@pytest.mark.parametrize(
    ("where", "place", "near"),
    [
        ("tabel_name = 'a'", "'tabel_name' at character 0", "table_name"),
        ("region_count > 1 and versoin = 2", "'versoin' at character 21", "version"),
        ("TABLE_NAME = 'a'", "'TABLE_NAME' at character 0", "table_name"),
        ("table_name = ", "the end", None),
        ("table_name like 'a%'", "'like' at character 11", None),
        ("table_name = 'a", '"\'" at character 13', None),
        ("table_name = 'a' 'b'", "'b' at character 17", None),
        ("", "the end", None),
        ("table_name ; drop", "';' at character 11", None),
        ("table_name = 1", "string beside int64", None),
        ("table_name", "string", None),
        ("created_at > 'yesterday'", "yesterday", None),
        ("(" * 40 + "true", None, None),
        ("region_count / 0 = 1", "divide by zero", None),
    ],
)
async def test_given_a_filter_that_means_nothing_then_its_place_is_named(
    where: str, place: str | None, near: str | None
) -> None:
    async with leader() as one:
        await one.make()
        for form in ("json", "csv"):
            query = {"where": where, "format": form}
            answer = await one.client.get(f"{VIEWS}/tables", params=query)
            facts = answer.json()["facts"]

            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
            assert place is None or facts["found"] == place
            assert answer.json().get("did_you_mean") == near
            if place is not None and "character" in place:
                line, mark = facts["excerpt"].split("\n")
                assert (line, mark) == (where, " " * int(place.rsplit(" ", 1)[1]) + "^")


@pytest.mark.parametrize(
    ("path", "status", "near"),
    [
        ("tabels", 404, "tables"),
        ("tables?columns=table_nam", 422, "table_name"),
        ("tables?columns=table_name,", 422, None),
        ("tables?page_token=abc", 400, None),
        ("tables?limit=3", 422, None),
        ("tables?format=csv&page_size=3", 422, None),
        ("tables?format=xml", 422, None),
        ("tables?format=csv&limit=0", 422, None),
    ],
)
async def test_given_what_a_view_does_not_take_then_it_is_refused(
    path: str, status: int, near: str | None
) -> None:
    async with leader() as one:
        answer = await one.client.get(f"{VIEWS}/{path}")

        assert answer.status_code == status, answer.text
        assert answer.json().get("did_you_mean") == near


async def test_given_a_token_of_another_filter_then_refused() -> None:
    async with everything() as one:
        token = (await page(one, "tables", page_size=1))["next_page_token"]
        query = {"page_token": token, "where": "version = 1"}
        answer = await one.client.get(f"{VIEWS}/tables", params=query)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-page-token")


def table_of(answer: httpx.Response) -> pa.Table:
    return pa.ipc.open_stream(answer.content).read_all()


async def test_given_a_file_then_it_has_the_rows_of_all_pages() -> None:
    async with everything() as one:
        for view in ("tables", "columns", "regions", "nodes", "procedures", "dropped_tables"):
            whole = await rows(one, view)
            arrow = await one.client.get(f"{VIEWS}/{view}", headers={"accept": ARROW})
            text = await one.client.get(f"{VIEWS}/{view}?format=csv")
            table = table_of(arrow)
            version = str(one.version)

            assert arrow.headers["content-type"] == ARROW
            assert arrow.headers["catalog-version"] == version
            assert table.schema.metadata == {b"catalog_version": version.encode()}
            assert (table.num_rows, table.column_names) == (len(whole), list(whole[0]))
            parsed = pyarrow.csv.read_csv(
                io.BytesIO(text.content),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types={name: pa.string() for name in table.column_names},
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for name in table.column_names:
                told = [row[name] for row in whole]
                texts = [v if v is None or isinstance(v, str) else str(v).lower() for v in told]
                if view != "nodes":  # phi runs
                    assert parsed[name].to_pylist() == texts
                if pa.types.is_string(table.schema.field(name).type):
                    assert table[name].to_pylist() == told


async def test_given_no_rows_or_a_limit_then_a_file_is_whole() -> None:
    async with everything() as one:
        none = await one.client.get(f"{VIEWS}/locks?format=arrow")
        two = await one.client.get(f"{VIEWS}/columns?format=arrow&limit=2&columns=column_name")
        head = await one.client.get(f"{VIEWS}/locks?format=csv")

        assert table_of(none).num_rows == 0
        assert table_of(two).to_pylist() == [{"column_name": "id"}, {"column_name": "carrier"}]
        assert head.text.startswith('"lock_key","procedure_id"')


async def test_given_as_many_files_on_their_way_as_may_be_then_another_waits() -> None:
    async with leader() as one:
        one.state.views.open = VIEW_STREAMS_MAX
        answer = await one.client.get(f"{VIEWS}/tables?format=csv")
        plain = await one.client.get(f"{VIEWS}/tables")
        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
        assert plain.status_code == 200


async def test_given_a_read_that_stands_when_asked_again_then_304() -> None:
    async with everything() as one:
        tag = (await one.client.get(f"{VIEWS}/tables")).headers["etag"]
        same = await one.client.get(f"{VIEWS}/tables", headers={"if-none-match": tag})
        await one.make("more")
        other = await one.client.get(f"{VIEWS}/tables", headers={"if-none-match": tag})
        assert (same.status_code, other.status_code) == (304, 200)


def test_given_a_follower_then_it_forwards_what_only_the_leader_knows() -> None:
    forwarded = {name for name in ALL if is_the_leaders("GET", f"{VIEWS}/{name}")}
    assert forwarded == {"regions", "nodes", "frontends", "procedures", "locks"}
    assert not is_the_leaders("GET", VIEWS)


async def test_given_a_version_that_is_not_here_then_a_read_waits_for_it() -> None:
    async with leader() as one:
        ahead = one.version + 1
        async with asyncio.TaskGroup() as tasks:
            read = one.client.get(f"{VIEWS}/tables?min_version={ahead}")
            reading = tasks.create_task(read)
            await one.make()
        answer = reading.result()
        assert (answer.status_code, len(answer.json()["rows"])) == (200, 1)


async def test_given_a_column_that_none_comes_close_to_then_all_are_named() -> None:
    async with leader() as one:
        answer = (await one.client.get(f"{VIEWS}/tables?columns=x")).json()

        assert "did_you_mean" not in answer
        assert {"table_name", "version"} < set(answer["facts"]["existing"])

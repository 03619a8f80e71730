"""/docs: the whole surface on one page, from nowhere else."""

import re
from html.parser import HTMLParser

from metasrv.api.openapi import document
from tests.metasrv.api.rig import leader

LOADS = {"src", "href", "action", "data", "poster", "srcset", "formaction", "background"}


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids |= {value or "" for name, value in attrs if name == "id"}
        self.links |= {value or "" for name, value in attrs if name in LOADS}


async def test_given_the_page_then_it_refers_to_itself_and_shows_every_route() -> None:
    async with leader() as one:
        answer = await one.client.get("/docs")
        machine = await one.client.get("/openapi.json")

    page = Page()
    page.feed(answer.text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none';")
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base"}
    assert page.links <= {"/openapi.json"} | {f"#{one}" for one in page.ids}
    assert not re.search(r"url\(|@import", answer.text)
    assert machine.json() == document()
    for path in document()["paths"]:
        assert f"<code>{path}</code>" in answer.text
    assert page.ids == set(document()["components"]["schemas"])

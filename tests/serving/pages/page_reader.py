"""Reads the pages of a program as a browser would: which addresses they load or lead to."""

import re
from html.parser import HTMLParser
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import httpx

from metasrv_base.wire.problem.problems import KINDS, page_of

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
LOADS = {"src", "href", "action", "data", "poster", "srcset", "formaction", "background"}
LOCAL = {"'none'", "'self'", "'unsafe-inline'", "data:"}
"""Sources of a content policy that name no other host."""


class Client(Protocol):
    async def get(self, url: str, *, headers: dict[str, str]) -> httpx.Response: ...

    async def head(self, url: str, *, headers: dict[str, str]) -> httpx.Response: ...


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links |= {value or "" for name, value in attrs if name in LOADS}


async def check_start(client: Client, title: str) -> None:
    """`/` for a browser leads to what it leads a program to, and every address answers."""
    page = await client.get("/", headers=BROWSER)
    machine = await client.get("/", headers={"Accept": "application/json"})
    head = await client.head("/", headers=BROWSER)

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert title in page.text
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == page.headers["content-type"]
    assert machine.json()["title"] == title
    paths = {link["path"] for link in machine.json()["links"]}
    assert {"/docs", "/openapi.json"} < paths
    assert {"/" + link for link in Page(page.text).links} - {"/data:,"} == paths
    for path in paths:
        answer = await client.get(path, headers={})
        assert answer.status_code in (200, 503), path  # 503: it is not ready here, and says so


async def check_docs(client: Client) -> None:
    """Checks that all that `/docs` loads comes from this program, and that nothing else may be
    loaded."""
    page = await client.get("/docs", headers=BROWSER)
    _check_policy(page)
    loaded = [link for link in Page(page.text).links if link != "data:,"]
    assert sorted(loaded) == ["docs/start.js", "docs/swagger-ui-bundle.js", "docs/swagger-ui.css"]
    assert not re.search(r"<script>|url\(|@import|[a-z]+://", page.text)
    for link in loaded:
        part = await client.get(urljoin("/docs", link), headers={})
        assert part.status_code == 200
        _check_policy(part)
        if link.endswith(".css"):
            assert set(re.findall(r"url\(['\"]?(\w+:)", part.text)) <= {"data:"}
            assert "@import" not in part.text
        if link.endswith("start.js"):
            assert "://" not in part.text
            assert 'new URL("openapi.json", document.baseURI)' in part.text
            assert "validatorUrl: null" in part.text
    bundle = await client.get("/docs/swagger-ui-bundle.js", headers={})
    assert bundle.headers["content-type"].startswith("text/javascript")
    assert b"SwaggerUIBundle" in bundle.content
    for name in ("consts.py", "..%2Fcore.py", "swagger-ui.js"):
        assert (await client.get(f"/docs/{name}", headers={})).status_code in (400, 404)


async def check_problems(client: Client) -> None:
    """The `type` of an error answer, resolved against its address, answers its page."""
    unknown = await client.get("/problems/no-such-code", headers={})
    for kind in KINDS.values():
        address = urljoin("/v1/anything", f"/problems/{kind.code}")
        text = await client.get(address, headers={})
        assert (text.status_code, text.text) == (200, page_of(kind)), kind.code
    own = await client.get(unknown.json()["type"], headers=BROWSER)

    assert unknown.status_code == 404
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert own.headers["content-type"] == "text/html; charset=utf-8"
    assert Page(own.text).tags == {"html", "head", "meta", "title", "body", "h1", "h2", "p"}
    assert KINDS["not-found"].title in own.text


def _check_policy(answer: httpx.Response) -> None:
    """The browser may load from this origin only."""
    policy = answer.headers["content-security-policy"]
    rules = [rule.split() for rule in policy.split(";")]
    assert ["default-src", "'none'"] in rules
    assert {source for rule in rules for source in rule[1:]} <= LOCAL
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert urlsplit(str(answer.url)).netloc

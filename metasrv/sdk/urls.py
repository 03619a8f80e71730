"""URLs of the service, as callers name them."""

from collections.abc import Sequence

from metasrv_base.errors import Refused


def urls_of(url: str | Sequence[str]) -> tuple[str, ...]:
    """One URL, several separated by commas, or a list. Raises Refused."""
    parts = url.split(",") if isinstance(url, str) else list(url)
    urls = tuple(part.strip().rstrip("/") for part in parts if part.strip())
    if not urls or not all(part.startswith(("http://", "https://")) for part in urls):
        raise Refused("invalid-request", found=str(url), expected="URLs, as http://127.0.0.1:4000")
    return urls

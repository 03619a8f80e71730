"""An etcd that asks who calls."""

import base64
from typing import Any

import httpx

from keys.key import prefix_end
from keys.store.etcd_calls import Login
from tests.etcd.process import EtcdProcess


async def guard(etcd: EtcdProcess, prefix: bytes, login: Login) -> None:
    """From now on only the user of *login* may do anything under *prefix*, and root elsewhere."""
    url = f"{etcd.url}/v3/auth/"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:

        async def ask(path: str, **body: Any) -> None:
            (await http.post(path, json=body)).raise_for_status()

        await ask("user/add", name="root", password=login.password)
        await ask("user/grant", user="root", role="root")
        await ask("role/add", name="keeper")
        of_prefix = {"key": _text(prefix), "range_end": _text(prefix_end(prefix))}
        await ask("role/grant", name="keeper", perm={"permType": "READWRITE", **of_prefix})
        await ask("user/add", name=login.user, password=login.password)
        await ask("user/grant", user=login.user, role="keeper")
        await ask("enable")


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()

"""The HTTP surface as one page of HTML: made from its document, complete in itself. Pure.

No script, no style sheet, no font and no picture from elsewhere: it is read where nothing else can
be reached, and its content policy forbids the browser to try.
"""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
code, pre { font: 13px/1.5 ui-monospace, monospace }
details { border-top: 1px solid #ddd; padding: .4rem 0 }
summary { cursor: pointer }
summary code { display: inline-block; min-width: 4rem; font-weight: 600 }
td { padding: .1rem 1rem .1rem 0; vertical-align: top }
pre { background: #f6f6f6; overflow-x: auto; padding: .6rem }
"""
_REF = "#/components/schemas/"

Json = Mapping[str, Any]


def page(document: Json) -> str:
    """All operations by tag, then all models."""
    title = escape(document["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
        '<p>The same for machines: <a href="/openapi.json">/openapi.json</a></p>'
        f"{''.join(_tags(document))}<h2>Models</h2>{''.join(_models(document))}</body></html>"
    )


def _tags(document: Json) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found = by_tag.setdefault(operation["tags"][0], [])
            found.append(_operation(method.upper(), path, operation))
    for tag, operations in by_tag.items():
        yield f"<h2>{escape(tag)}</h2>{''.join(operations)}"


def _operation(method: str, path: str, operation: Json) -> str:
    said = escape(operation.get("description", ""))
    rows = [_row(one["name"], one["in"], _said(one)) for one in operation.get("parameters", ())]
    rows += [
        _row("body", media, _model(body)) for media, body in _contents(operation, "requestBody")
    ]
    for status, answer in operation["responses"].items():
        models = {_model(body) for _, body in _contents({"it": answer}, "it")}
        rows.append(_row(status, " ".join(sorted(models)), escape(answer["description"])))
    return (
        f"<details><summary><code>{method}</code> <code>{escape(path)}</code></summary>"
        f"<p>{said}</p><table>{''.join(rows)}</table></details>"
    )


def _contents(holder: Json, name: str) -> Iterator[tuple[str, Json]]:
    for media, content in holder.get(name, {}).get("content", {}).items():
        yield media, content.get("schema", {})


def _row(name: str, kind: str, said: str) -> str:
    shown = kind if kind.startswith("<") else escape(kind)
    return f"<tr><td><code>{escape(name)}</code></td><td>{shown}</td><td>{said}</td></tr>"


def _said(parameter: Json) -> str:
    described = parameter.get("description") or parameter["schema"].get("description", "")
    return escape(described) + (" (required)" if parameter.get("required") else "")


def _model(schema: Json) -> str:
    """Links to the models that it names."""
    names = [one for one in _names(schema) if one]
    return " ".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in names)


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if str(schema.get("$ref", "")).startswith(_REF):
            yield schema["$ref"].removeprefix(_REF)
        for value in schema.values():
            yield from _names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _names(value)


def _models(document: Json) -> Iterator[str]:
    for name, schema in document["components"]["schemas"].items():
        text = escape(json.dumps(schema, indent=1, ensure_ascii=False))
        yield f'<details id="{escape(name)}"><summary>{escape(name)}</summary><pre>{text}</pre>'
        yield "</details>"

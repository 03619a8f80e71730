"""References of documents, looked up in this checkout: paths, dotted names, commands, links.

Documents are read as text and code as syntax trees: nothing is imported. Fenced blocks are left
out, except that in a diagram (mermaid) every dotted name counts as if it stood in backticks.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PACKAGES = ("metasrv_base", "serving", "keys", "procedures", "metasrv", "dataplane")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|<img[^>]* src=\"([^\"]+)\"")
_ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)*/?(?:::[\w.]+)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_ELSEWHERE = frozenset({"pyarrow", "pa", "db"})
"""Names of other code: of packages that documents mention, and variables of their examples."""
_COMMAND = re.compile(r"^(?:\.venv/bin/)?(make|metasrv) ([a-z][a-z-]*)")


Names = frozenset[str]
"""Names in one file: its own, `Class.member` for its classes, and the dotted words that
it writes out (`table.created`)."""


@dataclass(frozen=True)
class Checkout:
    """The code as documents refer to it."""

    root: Path

    @cached_property
    def modules(self) -> Mapping[str, Names]:
        """The product, by dotted name."""
        found = {}
        for top in PACKAGES:
            for file in sorted((self.root / top).rglob("*.py")):
                path = file.relative_to(self.root).with_suffix("").as_posix()
                found[path.removesuffix("/__init__").replace("/", ".")] = names_in(file)
        return found

    @cached_property
    def stems(self) -> Mapping[str, list[Names]]:
        """The same, by the last part of the name."""
        found: dict[str, list[Names]] = {}
        for name, names in self.modules.items():
            found.setdefault(name.rpartition(".")[2], []).append(names)
        return found

    @cached_property
    def members(self) -> Names:
        return frozenset().union(*self.modules.values())

    @cached_property
    def files(self) -> frozenset[str]:
        """Bare names of files and folders of the product and the documents."""
        folders = (self.root / top for top in (*PACKAGES, "docs", "scripts"))
        return frozenset(path.name for folder in folders for path in folder.rglob("*"))

    @cached_property
    def commands(self) -> frozenset[str]:
        """`make TARGET` and `metasrv COMMAND`."""
        makefile = (self.root / "Makefile").read_text()
        made = {f"make {target}" for target in re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)}
        rows = (self.root / "metasrv/cli/main.py").read_text()
        told = re.findall(r"^ +\(\s*\"([a-z-]+)\",\s*\"metasrv\.", rows, re.MULTILINE)
        return frozenset(made | {f"metasrv {name}" for name in told})

    def has_path(self, reference: str) -> bool:
        """`path`, `folder/`, `glob` or `path.py::name`."""
        path, _, name = reference.partition("::")
        if "*" in path:
            return any(self.root.glob(path))
        whole = self.root / path
        if path.endswith("/"):
            return whole.is_dir()
        if not name:
            return whole.exists()
        return whole.suffix == ".py" and whole.exists() and name in names_in(whole)

    def has_file(self, name: str) -> bool:
        """A file at the top, or of that bare name anywhere in the product or the documents."""
        return (self.root / name).exists() or name in self.files

    def has_name(self, dotted: str) -> bool:
        """`package.module`, `package.module.name`, `module.name` or `Class.member`."""
        if dotted in self.modules or dotted in self.members:
            return True
        if (self.root / dotted.replace(".", "/")).with_suffix(".py").exists():
            return True  # a module beside the product: `benchmarks.service.reads`
        for cut in range(dotted.count("."), 0, -1):
            parts = dotted.split(".")
            module, name = self.modules.get(".".join(parts[:cut])), ".".join(parts[cut:])
            if module is not None:
                return name in module
        stem, _, name = dotted.partition(".")
        return any(name in names for names in self.stems.get(stem, ()))

    def is_ours(self, dotted: str) -> bool:
        """Whether *dotted* claims to be a name of this code: also one of a module that is gone."""
        first = dotted.partition(".")[0]
        return first in self.stems or not (first in _ELSEWHERE or first in sys.stdlib_module_names)


def missing(document: Path, checkout: Checkout) -> list[str]:
    """Returns the references in *document* that this checkout does not have, in order."""
    text = document.read_text()
    prose = _FENCE.sub("", text)
    fenced = _FENCE.findall(text)
    spans = [*_SPAN.findall(prose), *(s for kind, body in fenced for s in _claims(kind, body))]
    broken = [link for link in _targets(prose) if not (document.parent / link).exists()]
    unknown = [span for span in spans if not _holds(span, checkout)]
    return [*unknown, *broken, *_lost_anchors(document, prose)]


def _lost_anchors(document: Path, prose: str) -> Iterator[str]:
    """Links to a heading that its page does not have."""
    for link, anchor in _ANCHOR.findall(prose):
        page = document.parent / link if link else document
        if "://" in link or page.suffix != ".md" or not page.exists():
            continue
        headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
        if anchor not in {_slug(heading) for heading in headings}:
            yield f"{link}#{anchor}"


def _slug(heading: str) -> str:
    """The anchor that a heading is given where these pages are read."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _claims(kind: str, body: str) -> Iterable[str]:
    """Returns the references in a fenced block: names in a diagram, commands in a dialogue."""
    if kind == "mermaid":
        return _DOTTED.findall(body)
    return [line for line in body.splitlines() if _COMMAND.match(line)]


def _targets(prose: str) -> Iterator[str]:
    for link, image in _LINK.findall(prose):
        target = link or image
        if "://" not in target:
            yield target


def _holds(span: str, checkout: Checkout) -> bool:
    command = _COMMAND.match(span)
    if command is not None:
        return f"{command[1]} {command[2]}" in checkout.commands
    name = span.removesuffix("()")
    if "/" in name and _PATH.fullmatch(name):
        first = name.partition("/")[0]
        return not (checkout.root / first).is_dir() or checkout.has_path(name)
    if _DOTTED.fullmatch(name) and checkout.is_ours(name):
        return checkout.has_file(name) or checkout.has_name(name)
    return True


@cache
def names_in(file: Path) -> Names:
    return frozenset(_names(ast.parse(file.read_text())))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and _DOTTED.fullmatch(str(node.value)):
            yield str(node.value)
    for part in tree.body:
        yield from _defined(part)
        if isinstance(part, ast.ClassDef):
            yield from (f"{part.name}.{name}" for inner in part.body for name in _defined(inner))


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name

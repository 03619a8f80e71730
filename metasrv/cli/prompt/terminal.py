"""The input of the prompt on a terminal: lines, history and completion, by prompt_toolkit.

Imported only when a prompt starts: the library takes a tenth of a second.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from metasrv.cli.prompt.completion import CompletionCandidate
from metasrv.cli.prompt.history import make
from metasrv.cli.prompt.input_end import is_whole

CONTINUATION = "    -> "
Complete = Callable[[str], Iterable[CompletionCandidate]]


class LastingHistory(FileHistory):
    """A history that goes on where its file cannot be written, as on a full disk. A file that
    was removed meanwhile is made again, for its owner alone."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            make(self._path)
            super().store_string(string)


class _Completer(Completer):
    def __init__(self, complete: Complete) -> None:
        self._complete = complete

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        for candidate in self._complete(document.text_before_cursor):
            yield Completion(candidate.text, -candidate.length, display_meta=candidate.kind)


def terminal(complete: Complete, history: Path | None) -> "PromptSession[str]":
    """Opens a line editor. *complete* is given the text before the cursor and must not wait;
    *history* None keeps the history in memory."""
    kept: History = InMemoryHistory() if history is None else LastingHistory(history)
    return PromptSession(
        multiline=True,
        prompt_continuation=CONTINUATION,
        completer=_Completer(complete),
        complete_while_typing=False,
        history=kept,
        key_bindings=_bindings(),
        enable_history_search=False,
    )


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=has_focus(DEFAULT_BUFFER))
    def enter(event: KeyPressEvent) -> None:
        """Sends an input that is whole, else begins a line."""
        buffer = event.current_buffer
        if is_whole(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings

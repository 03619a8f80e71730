"""Completion in bash, which splits words at `:` and `=` before a program is asked.

`--alter-type price:de` is three words to bash, and only the last of them is replaced.
"""

import os
import sys
from collections.abc import Sequence

from typer import _completion_classes as classes
from typer._click.shell_completion import CompletionItem, split_arg_string

BREAKS = ":="
"""The characters of COMP_WORDBREAKS that stand inside of our words."""


class BashWords(classes.BashComplete):
    """Joins what bash has split, and answers with the end of each word that bash will replace."""

    _replaced_from = 0

    def get_completion_args(self) -> tuple[list[str], str]:
        words = split_arg_string(os.environ["COMP_WORDS"])[1:]
        args, incomplete = joined(words, int(os.environ["COMP_CWORD"]) - 1)
        self._replaced_from = 1 + max(map(incomplete.rfind, BREAKS))
        return args, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return str(item.value)[self._replaced_from :]


def join_words_of_bash() -> None:
    """For a TAB; call it before the completion of typer is set up."""
    vars(sys.modules[classes.__name__])["BashComplete"] = BashWords


def joined(words: Sequence[str], number: int) -> tuple[list[str], str]:
    """The words before the word *number*, and what there is of that one. An option and its value
    stay apart, whether a blank or `=` stands between them."""
    whole: list[str] = []
    is_open = False
    for word in [*words, ""][: number + 1]:
        is_break = bool(word) and not word.strip(BREAKS)
        if is_break and whole and not whole[-1].startswith("--"):
            whole[-1] += word
            is_open = True
        elif is_open:
            whole[-1] += word
            is_open = False
        elif is_break:
            whole.append("")
            is_open = True
        else:
            whole.append(word)
    return whole[:-1], whole[-1] if whole else ""

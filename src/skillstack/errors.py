"""The one exception that means "the input is wrong", whose message is a sentence for the person who gave it."""

from collections.abc import Iterable
from difflib import get_close_matches


class SkillstackError(Exception):
    """Bad input. The command line prints its message and exits with status 2; nothing else is caught there.

    It is not a ValueError, which argument parsers catch and dress up in words of their own.
    """


def unknown(kind: str, given: str, known: Iterable[str]) -> SkillstackError:
    """An error that lists what is known and names what was probably meant."""
    known = tuple(known)
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    guess = f' Did you mean "{near[0]}"?' if near else ""
    return SkillstackError(f'Unknown {kind} "{given}".{guess} Known: {", ".join(known)}.')

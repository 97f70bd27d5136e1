"""Where the time went: a tree of named parts, cheap enough to leave on; and how much memory it took at the most."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

REST = "bookkeeping, rest"


@dataclass
class Timing:
    """A part, how long it took in all, how often it ran, and the parts inside it."""

    name: str
    seconds: float = 0.0
    times: int = 0
    parts: dict[str, Timing] = field(default_factory=dict)

    @property
    def rest(self) -> float:
        """Seconds spent in none of the parts inside."""
        return self.seconds - sum(part.seconds for part in self.parts.values())

    def lines(self, indent: int = 0, whole: float | None = None) -> list[str]:
        """The tree as text, with shares of the whole."""
        whole = whole or self.seconds or 1.0
        share, label = 100 * self.seconds / whole, "  " * indent + self.name
        found = [f"{label:<28}{self.seconds:9.3f} s {share:5.1f} %  {self.times:>8} x"]
        for part in self.parts.values():
            found += part.lines(indent + 1, whole)
        if self.parts:
            label = "  " * (indent + 1) + REST
            found.append(f"{label:<28}{self.rest:9.3f} s {100 * self.rest / whole:5.1f} %")
        return found


class Timer:
    """Times nested `with timer("part"):` blocks into one tree."""

    def __init__(self, name: str = "all") -> None:
        self.root = Timing(name)
        self._stack = [self.root]

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        part = self._stack[-1].parts.setdefault(name, Timing(name))
        self._stack.append(part)
        begin = perf_counter()
        try:
            yield
        finally:
            part.seconds += perf_counter() - begin
            part.times += 1
            self._stack.pop()
            if len(self._stack) == 1:
                self.root.seconds = sum(inner.seconds for inner in self.root.parts.values())

    def seconds(self, *names: str) -> float:
        """The time spent in a part, named from the root inwards; 0 if it never ran."""
        part = self.root
        for name in names:
            if name not in part.parts:
                return 0.0
            part = part.parts[name]
        return part.seconds


def most_memory() -> int:
    """Bytes that this process has had at the most."""
    import resource  # not there on Windows, where agents can play, but not train

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

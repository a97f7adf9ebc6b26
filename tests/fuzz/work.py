"""How much is done and kept: counted in calls and bytes, so that it means the same on every machine."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")


class TooMuchWork(AssertionError):
    """More calls than the input accounts for."""


def within(most: int, run: Callable[[], Result]) -> Result:
    """The result of `run`, which may make `most` calls of functions, Python's and C's."""
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls > most:
                sys.setprofile(None)
                raise TooMuchWork(f"more than {most} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return run()
    finally:
        sys.setprofile(before)


class Peak:
    """Bytes of Python objects, at most, since it began."""

    def __init__(self) -> None:
        self.bytes = 0


@contextmanager
def measured() -> Iterator[Peak]:
    peak = Peak()
    tracemalloc.start(1)
    try:
        yield peak
        peak.bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

"""Shrinks findings: a generated program to fewer and simpler decisions, a mutated text to fewer tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


Stretch = tuple[int, int]


def pruned(
    numbers: Sequence[int],
    parts_of: Callable[[list[int]], Sequence[Stretch]],
    keeps: Callable[[list[int]], bool],
    attempts: int,
) -> list[int]:
    """Decisions with as many parts as possible left out, or made of their simplest choice; the longest go first."""
    best, left, smaller = list(numbers), attempts, True
    while smaller:
        smaller = False
        for start, end in sorted(parts_of(best), key=lambda part: part[0] - part[1]):
            for instead in ([], [0]):
                tried = [*best[:start], *instead, *best[end:]]
                if len(tried) >= len(best):
                    continue
                if left <= 0:
                    return best
                left -= 1
                smaller = keeps(tried)
                if smaller:
                    break
            if smaller:
                best = tried
                break
    return best


SMALL_PARTS = 8
"""Parts of at most so many items are tried wherever they may start."""


def shorter(items: Sequence[T], keeps: Callable[[list[T]], bool], attempts: int) -> list[T]:
    """As few of the items as still show the problem: halves, quarters and so on are left out, then every small part."""
    best, left = list(items), attempts
    for size in _sizes(len(best)):
        place = 0
        while place < len(best):
            if left <= 0:
                return best
            tried = best[:place] + best[place + size :]
            left -= 1
            if keeps(tried):
                best = tried
            else:
                place += size if size > SMALL_PARTS else 1
    return best


def _sizes(count: int) -> list[int]:
    """How large the parts are that are left out, the largest first."""
    sizes = []
    while count // 2 > SMALL_PARTS:
        count //= 2
        sizes.append(count)
    return sizes + list(range(min(SMALL_PARTS, count), 0, -1))


def simpler(numbers: Sequence[int], keeps: Callable[[list[int]], bool], attempts: int) -> list[int]:
    """Numbers as near to 0 as still show the problem: each is tried as 0, then as its half."""
    best, left = list(numbers), attempts
    for place, number in enumerate(best):
        for smaller in dict.fromkeys((0, number // 2)):
            if left <= 0:
                return best
            if smaller < best[place]:
                left -= 1
                tried = [*best[:place], smaller, *best[place + 1 :]]
                if keeps(tried):
                    best = tried
                    break
    return best

"""Case ids: stable slugs made from where a test stands, `ir/matmul/k-tail/bf16`."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import PurePosixPath

from tessera_conformance.locations import CHAPTERS, suite_directory

ABOVE = ("", suite_directory().name)
"""The folders above a chapter's: none, or the folder of the suite."""


class SuiteNotCollected(Exception):
    """The suite could not be collected; the text is pytest's own."""


@cache
def case_id(node_id: str) -> str | None:
    """The case id of a pytest node id, or None where it is no test of the suite.

    `conformance/ir/test_matmul.py::test_k_tail[bf16]` is `ir/matmul/k-tail/bf16`.
    """
    place, _, test = node_id.partition("::")
    folders = _folders(place)
    if folders is None or not test:
        return None
    name, _, parameters = test.replace("::", "-").partition("[")
    slugs = [name.removeprefix("test_"), *([parameters.removesuffix("]")] if parameters else [])]
    return "/".join([folders, *map(slug, slugs)])


@cache
def _folders(place: str) -> str | None:
    """Return the prefix of the ids of a file's cases, or None where it is no file of the suite."""
    parts = PurePosixPath(place).parts
    positions = [i for i, part in enumerate(parts[:-1]) if part in CHAPTERS and ("", *parts)[i] in ABOVE]
    if not positions:
        return None
    folders = [*parts[positions[-1] : -1], parts[-1].removesuffix(".py").removeprefix("test_")]
    return "/".join(map(slug, folders))


def slug(text: str) -> str:
    """Lower case, with a hyphen for every run of other characters than letters, digits, points and hyphens."""
    return re.sub(r"[^a-z0-9./-]+", "-", text.lower())


def in_shard(case: str, shard: tuple[int, int]) -> bool:
    """True if a case belongs to shard k of N, by the hash of its id: the same cases on every machine."""
    number, count = shard
    return int.from_bytes(hashlib.sha256(case.encode()).digest()[:8], "big") % count == number - 1


def parse_shard(text: str) -> tuple[int, int]:
    """`k/N` with 1 <= k <= N.

    Raises:
        ValueError: the text has another form.
    """
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"--shard {text}: expected k/N with 1 <= k <= N, such as 2/4")
    return int(match[1]), int(match[2])

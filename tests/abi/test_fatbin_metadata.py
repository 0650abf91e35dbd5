"""Metadata and hostile images: any bytes are read as they are written, or refused, in bounded memory."""

from __future__ import annotations

import json
import random
import re
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tessera_reference.abi.fatbin import (
    Fatbin,
    KernelEntry,
    KernelParameter,
    Metadata,
    Section,
    metadata_of_bytes,
    metadata_to_bytes,
    read,
    write,
)
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status


@pytest.fixture
def document(module: Fatbin) -> Any:
    return json.loads(metadata_to_bytes(module.metadata))


def test_large_metadata(small_module: Fatbin) -> None:
    """A thousand kernels of forty parameters."""
    choose = random.Random(3)
    parameters = tuple(KernelParameter(f"p{n}", choose.choice(["int8", "int64", "fp16"])) for n in range(40))
    kernels = tuple(KernelEntry(f"k{n}", "m", parameters, (1, 1, 1), (1, 1, 1)) for n in range(1000))
    metadata = Metadata(kernels, NumericsPolicy())
    assert metadata_of_bytes(metadata_to_bytes(metadata)) == metadata


Mutation = Callable[[random.Random, bytes], bytes]
NUMBERS = (
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    8,
    31,
    32,
    33,
    64,
    96,
    208,
    255,
    256,
    2**16 - 1,
    2**31,
    2**32 - 1,
    2**63,
    2**64 - 8,
    2**64 - 1,
)
WORDS = (
    b"null",
    b"true",
    b"false",
    b"-1",
    b"0",
    b"1",
    b"1e9",
    b"99999999999999999999",
    b'"x"',
    b'"ptr"',
    b'"int8"',
    b"[]",
    b"{}",
)
TOKEN = re.compile(rb'"[^"]*"|-?\d+|true|false|null|[][{}:,]')


def flip_bits(choose: random.Random, image: bytes) -> bytes:
    altered = bytearray(image)
    for _ in range(choose.choice((1, 1, 2, 8))):
        altered[choose.randrange(len(image))] ^= 1 << choose.randrange(8)
    return bytes(altered)


def cut(choose: random.Random, image: bytes) -> bytes:
    start, stop = sorted(choose.randrange(len(image) + 1) for _ in range(2))
    return image[:start] + image[stop:] if choose.random() < 0.5 else image[:stop]


def insert(choose: random.Random, image: bytes) -> bytes:
    at = choose.randrange(len(image) + 1)
    count = choose.choice((1, 7, 8, 32, 56))
    return image[:at] + choose.choice((bytes(count), choose.randbytes(count), image[:count])) + image[at:]


def rewrite_field(choose: random.Random, image: bytes) -> bytes:
    """A number in the header or the table; offsets and sizes also by a little."""
    altered = bytearray(image)
    size = choose.choice((2, 4, 8))
    at = choose.randrange(8, min(208, len(image) - 8) // size * size, size)
    before = int.from_bytes(image[at : at + size], "little")
    after = choose.choice((choose.choice(NUMBERS), before + choose.randrange(-9, 10), len(image), len(image) - before))
    altered[at : at + size] = (after % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(altered)


def rewrite_metadata(choose: random.Random, image: bytes) -> bytes:
    """A token of the JSON exchanged, doubled or dropped; the image is shortened or lengthened accordingly."""
    start, size = struct.unpack_from("<QQ", image, 64 + 32 * struct.unpack_from("<I", image, 24)[0] + 8)
    stop = start + size
    tokens = TOKEN.findall(image[start:stop])
    for _ in range(choose.choice((1, 1, 2))):
        values = [n for n, token in enumerate(tokens) if token[:1] not in b"[]{}:," and tokens[n + 1 : n + 2] != [b":"]]
        at = choose.choice(values) if choose.random() < 0.8 and values else choose.randrange(len(tokens))
        tokens[at] = choose.choice((choose.choice(WORDS), choose.choice(tokens), 2 * tokens[at], b"", tokens[at][:-1]))
    text = b"".join(tokens)
    altered = bytearray(image[:start] + text + bytes(-len(text) % 8) + image[stop + -stop % 8 :])
    shift = len(text) + -len(text) % 8 - (stop + -stop % 8 - start)
    table = 64 + 32 * struct.unpack_from("<I", image, 24)[0]
    struct.pack_into("<Q", altered, table + 16, len(text))
    for position in range(1, struct.unpack_from("<I", image, 28)[0]):
        offset = struct.unpack_from("<Q", image, table + 56 * position + 8)[0]
        struct.pack_into("<Q", altered, table + 56 * position + 8, offset + shift)
    return bytes(altered)


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    cut,
    insert,
    rewrite_field,
    rewrite_field,
    rewrite_metadata,
    rewrite_metadata,
)


def splice(choose: random.Random, images: list[bytes]) -> bytes:
    first, second = choose.choice(images), choose.choice(images)
    at = choose.randrange(len(first))
    return first[:at] + second[choose.choice((at, choose.randrange(len(second)))) :]


def mutant(choose: random.Random, images: list[bytes], surgeon: Any) -> bytes:
    image = splice(choose, images) if choose.random() < 0.1 else choose.choice(images)
    if len(image) >= 240 and image in images:
        image = choose.choice(MUTATIONS)(choose, image)
    if choose.random() < 0.2 and len(image) > 64:
        image = flip_bits(choose, image)
    return surgeon.resealed(image) if choose.random() < 0.8 and len(image) >= 128 else image


def outcome(image: bytes) -> str:
    """Return "read", or the subject of the failure; raise anything else."""
    try:
        fatbin = read(image)
    except Failure as failure:
        if failure.status is Status.TESS_ERR_ABI_VERSION_MISMATCH:
            return "another version"
        if failure.status is not Status.TESS_ERR_INVALID_VALUE:
            raise
        return failure.given.partition(" is ")[0] if " is " in failure.given else "malformed"
    if write(fatbin) != image:
        raise AssertionError("an image that is read has another spelling")
    return "read"


@pytest.fixture(scope="module")
def images(small_module: Fatbin, module: Fatbin) -> list[bytes]:
    signed = replace(small_module, sections=(*small_module.sections, Section("signature", None, bytes(range(96)))))
    newer = replace(small_module, abi_version=(1, 1))
    return [write(image) for image in (small_module, small_module, signed, newer, module, module)]


def fuzz(images: list[bytes], surgeon: Any, seed: int, count: int) -> Counter[str]:
    choose = random.Random(seed)
    return Counter(outcome(mutant(choose, images, surgeon)) for _ in range(count))


def test_three_thousand_mutants_of_images(images: list[bytes], surgeon: Any) -> None:
    outcomes = fuzz(images, surgeon, seed=2024, count=3000)
    assert outcomes["read"] > 20
    assert outcomes["another version"] > 20
    assert len(outcomes) > 40, "the mutants do not reach enough of the reader"


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_two_hundred_thousand_mutants_of_images(
    images: list[bytes], surgeon: Any, drawn: Callable[[int], int], seed: int
) -> None:
    outcomes = fuzz(images, surgeon, seed, drawn(25_000))
    assert outcomes["read"] > drawn(200)
    assert outcomes["another version"] > drawn(200)
    assert len(outcomes) > 50


def peak(image: bytes) -> int:
    """Bytes allocated at the highest point while an image is read."""
    tracemalloc.start()
    try:
        outcome(image)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_by_the_size_of_the_image(images: list[bytes], surgeon: Any) -> None:
    choose = random.Random(5)
    for _ in range(300):
        image = mutant(choose, images, surgeon)
        assert peak(image) <= 64 * len(image) + 100_000


@pytest.mark.parametrize(
    "text",
    [b"[" + b"{}," * 30_000 + b"{}]", b"[" * 100_000, b"[" + b"[[]]," * 20_000 + b"[]]", b'"' + b"\\n" * 50_000 + b'"'],
)
def test_memory_is_bounded_where_metadata_is_hostile(text: bytes, surgeon: Any) -> None:
    image = surgeon.image([(5, 0xFFFFFFFF, text), (1, 0xFFFFFFFF, b"")])
    assert peak(image) <= 64 * len(image)


def test_counts_sizes_and_offsets_are_not_believed(small_module: Fatbin, surgeon: Any) -> None:
    """Each of them set to the largest number, the checksum right: nothing is allocated for what is not there."""
    image = write(small_module)
    for at, form in ((24, "<I"), (28, "<I"), (104, "<Q"), (112, "<Q"), (160, "<Q"), (168, "<Q")):
        altered = bytearray(image)
        struct.pack_into(form, altered, at, (1 << 8 * struct.calcsize(form)) - 1)
        sealed = surgeon.sealed(bytes(altered))
        assert outcome(sealed) != "read"
        assert peak(sealed) < 20_000


def test_large_images_take_a_small_multiple_of_their_size(small_module: Fatbin) -> None:
    section = Section("ptx", "sm_90", bytes(2_000_000))
    image = write(replace(small_module, sections=(section,)))
    assert metadata_to_bytes(read(image).metadata) == metadata_to_bytes(small_module.metadata)
    assert peak(image) < 8 * len(image)

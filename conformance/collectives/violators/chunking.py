"""Chunks that lose or repeat elements, miss tile boundaries, or have another unit (collectives spec 2.3 and 8)."""

from dataclasses import replace
from math import prod

from tessera_reference.abi.status import Failure
from tessera_reference.collectives.compression import Chunk, ChunkSize

from .changes import asked, at, result_of, updated

sliced, measured = result_of("adapter.collectives.chunks_of"), at("adapter.collectives.chunks_of")
stepped, read = at("collectives.compression.aligned"), at("adapter.collectives.read_chunk_size")


def tail_first(found):
    if len(found) < 2 or found[0].runs > 1:
        return found
    counts = [found[-1].count, *(chunk.count for chunk in found[:-1])]
    return [replace(chunk, first=sum(counts[:i]), count=counts[i]) for i, chunk in enumerate(found)]


# Boundaries, rows and columns


def first_axis(usual, function, shape, dtype, size, tile):
    rows = size.measure == "rows" and len(shape) > 2
    return usual(function, [shape[0], prod(shape[1:])] if rows else shape, dtype, size, tile)


# Sizes as they are written


def lenient(usual, *given):
    try:
        return usual(*given)
    except Failure:
        return ChunkSize("bytes", 1)


def rows_first(usual, function, chunk, size):
    rows = isinstance(chunk, dict) and "rows" in chunk
    return usual(function, {"rows": chunk["rows"]}) if rows else usual(function, chunk, size)


VIOLATIONS = [
    sliced("COLL-02.3-01", "tail_first", "puts the short chunk first", tail_first),
    sliced("COLL-08-09", "padded_tail", "makes the last chunk as long as the others",
        lambda found: [replace(chunk, count=found[0].count) for chunk in found]),
    sliced("COLL-08-09", "one_chunk", "does not slice",
        lambda found: [Chunk(0, sum(chunk.count * chunk.runs for chunk in found), 1, 1)] if found else []),
    sliced("COLL-08-09", "empty_chunk", "gives an empty tensor a chunk", lambda found: found or [Chunk(0, 1, 1, 1)]),
    asked("COLL-02.3-01", "ElementsForBytes", "counts a chunk in elements", "chunks",
        lambda given: given | {"dtype": "int8"}),
    stepped("COLL-02.3-03", "one_tile", "sends tile by tile",
        lambda usual, amount, tile: tile if tile > 1 else max(amount, 1)),
    measured("COLL-02.3-03", "swapped_tile", "takes rows for columns of a tile",
        lambda usual, *given: usual(*given[:4], given[4][::-1])),
    measured("COLL-02.3-03", "tile_of_one_row", "looks at the columns of a tile alone",
        lambda usual, *given: usual(*given[:4], (1, given[4][1]))),
    measured("COLL-02.3-02", "rows_of_first_axis", "takes the first axis alone for rows", first_axis),
    sliced("COLL-02.3-02", "packed_columns", "takes columns for consecutive elements",
        lambda found: [replace(chunk, stride=chunk.count) for chunk in found]),
    *(
        updated("collectives.compression.UNITS", "COLL-02.3-07", name, description, **unit)
        for name, description, unit in (
            ("kilobytes", "takes KiB for 1000 bytes", {"KiB": 1000}),
            ("megabytes", "takes MiB for 1000000 bytes", {"MiB": 10**6}),
            ("gigabytes", "takes GiB for 1000000000 bytes", {"GiB": 10**9}),
            ("kb_accepted", "accepts KB", {"KB": 1024}),
        )
    ),
    read("COLL-02.3-01", "impossible_chunk_accepted", "takes an impossible chunk for the smallest", lenient),
    read("COLL-08-01", "chunk_over_chunk_bytes", "lets chunk govern over another chunk_bytes",
        lambda usual, function, chunk, size: usual(function, chunk, None if chunk is not None else size)),
    read("COLL-02.3-02", "rows_over_others", "lets rows govern beside columns and bytes", rows_first),
]  # fmt: skip

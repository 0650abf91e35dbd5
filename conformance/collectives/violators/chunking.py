"""Chunks that lose or repeat elements, miss tile boundaries, or have another unit (collectives spec 2.3 and 8)."""

from dataclasses import replace

from tessera_conformance.strength import violates
from tessera_reference.abi.status import Failure
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.collectives import compression as chunk_sizes
from tessera_reference.collectives.compression import Chunk, ChunkSize, chunks_of, read_chunk_size

from ...ir.violators.changes import changed

# Elements


def sliced(clause, name, description, change):
    """Return a violation with other chunks of the same tensor."""

    def slices(*arguments):
        return change(chunks_of(*arguments))

    return changed(clause, name, description, ("adapter.collectives.chunks_of", slices))


def tail_first(found):
    if len(found) < 2 or found[0].runs > 1:
        return found
    counts = [found[-1].count, *(chunk.count for chunk in found[:-1])]
    return [replace(chunk, first=sum(counts[:i]), count=counts[i]) for i, chunk in enumerate(found)]


ELEMENTS = [
    sliced("COLL-02.3-01", "tail_first", "puts the short chunk first", tail_first),
    sliced("COLL-08-09", "padded_tail", "makes the last chunk as long as the others",
        lambda found: [replace(chunk, count=found[0].count) for chunk in found]),
    sliced("COLL-08-09", "one_chunk", "does not slice",
        lambda found: [Chunk(0, sum(chunk.count * chunk.runs for chunk in found), 1, 1)] if found else []),
    sliced("COLL-08-09", "empty_chunk", "gives an empty tensor a chunk", lambda found: found or [Chunk(0, 1, 1, 1)]),
]  # fmt: skip


# Boundaries


def stepped(clause, name, description, aligned):
    """Return a violation with another size of chunks for an amount and a tile."""
    return changed(clause, name, description, ("collectives.compression.aligned", aligned))


BOUNDARIES = [
    stepped("COLL-02.3-03", "one_tile", "sends tile by tile",
        lambda amount, tile: (tile if tile > 1 else max(amount, 1))),
]  # fmt: skip


def with_tile(change):
    """Return a function that chunks for another tile."""
    return lambda function, shape, dtype, size, tile: chunks_of(function, shape, dtype, size, change(tile))


TILES = [
    changed("COLL-02.3-03", "swapped_tile", "takes rows for columns of a tile",
            ("adapter.collectives.chunks_of", with_tile(lambda tile: (tile[1], tile[0])))),
    changed("COLL-02.3-03", "tile_of_one_row", "looks at the columns of a tile alone",
            ("adapter.collectives.chunks_of", with_tile(lambda tile: (1, tile[1])))),
]  # fmt: skip


# Rows and columns


def first_axis(function, shape, dtype, size, tile):
    if size.measure == "rows" and len(shape) > 2:
        flat = [shape[0], 1]
        for extent in shape[1:]:
            flat[1] *= extent
        return chunks_of(function, flat, dtype, size, tile)
    return chunks_of(function, shape, dtype, size, tile)


MEASURES = [
    changed("COLL-02.3-02", "rows_of_first_axis", "takes the first axis alone for rows",
            ("adapter.collectives.chunks_of", first_axis)),
    sliced("COLL-02.3-02", "packed_columns", "takes columns for consecutive elements",
        lambda found: [replace(chunk, stride=chunk.count) for chunk in found]),
]  # fmt: skip


# Sizes as they are written


def unit(clause, name, description, **units):
    """Return a violation with other units."""
    return changed(clause, name, description, ("collectives.compression.UNITS", chunk_sizes.UNITS | units))


UNITS = [
    unit("COLL-02.3-07", "kilobytes", "takes KiB for 1000 bytes", KiB=1000),
    unit("COLL-02.3-07", "megabytes", "takes MiB for 1000000 bytes", MiB=10**6),
    unit("COLL-02.3-07", "gigabytes", "takes GiB for 1000000000 bytes", GiB=10**9),
    unit("COLL-02.3-07", "kb_accepted", "accepts KB", KB=1024),
]


def read(clause, name, description, reading):
    """Return a violation that parses chunk and chunk_bytes differently."""
    return changed(clause, name, description, ("adapter.collectives.read_chunk_size", reading))


def lenient(function, chunk=None, chunk_bytes=None):
    try:
        return read_chunk_size(function, chunk, chunk_bytes)
    except Failure:
        return ChunkSize("bytes", 1)


def chunk_first(function, chunk=None, chunk_bytes=None):
    return read_chunk_size(function, chunk) if chunk is not None else read_chunk_size(function, None, chunk_bytes)


def first_of_both(function, chunk=None, chunk_bytes=None):
    if isinstance(chunk, dict) and "rows" in chunk:
        return read_chunk_size(function, {"rows": chunk["rows"]})
    return read_chunk_size(function, chunk, chunk_bytes)


READINGS = [
    read("COLL-02.3-01", "impossible_chunk_accepted", "takes an impossible chunk for the smallest", lenient),
    read("COLL-08-01", "chunk_over_chunk_bytes", "lets chunk govern over another chunk_bytes", chunk_first),
    read("COLL-02.3-02", "rows_over_others", "lets rows govern beside columns and bytes", first_of_both),
]


@violates("COLL-02.3-01", "counts a chunk in elements")
class ElementsForBytes(ReferenceAdapter):
    def collectives_chunks(self, *, dtype, **call):
        return super().collectives_chunks(dtype="int8", **call)

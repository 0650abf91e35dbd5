"""Weights that are gathered while the layer before runs: `python examples/collectives/prefetch.py`.

The gather of W[k+1] starts when layer k begins, and is awaited right before layer k+1 (collectives specification, 7.3).
"""

from dataclasses import replace

from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.queues import Run, prefetch, simulate

LAYERS, BYTES, LAYER = 5, 32 << 20, 250_000_000


def starts(run: Run, name: str) -> str:
    """The start of each layer's unit on the first device, in microseconds."""
    found = (min(slot.start for slot in run.slots if slot.id == f"{name}{layer}") for layer in range(LAYERS))
    return " ".join(f"{start / 1e6:7.1f}" for start in found)


def main() -> None:
    """Print when gathers and layers start, prefetched and at first need."""
    machine = topology_of("eight-sm90")
    units = prefetch(LAYERS, BYTES, LAYER, range(8))
    late = [
        replace(unit, after=(f"layer{int(unit.id[6:]) - 1}",)) if unit.id.startswith("gather") and unit.after else unit
        for unit in units
    ]
    for title, given in (("prefetched", units), ("gathered at first need", late)):
        run = simulate(given, machine, max_inflight=8)
        print(f"{title}: {run.duration / 1e6:.1f} us")
        print(f"  gathers start {starts(run, 'gather')}")
        print(f"  layers start  {starts(run, 'layer')}")


if __name__ == "__main__":
    main()

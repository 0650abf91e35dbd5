"""A data-parallel step on eight devices, with and without overlap: `python examples/collectives/data_parallel.py`.

On the way back a layer's gradients are scattered while the layers before it compute theirs; on the way forward a
layer's weights are gathered while the layer before runs (collectives specification, 7.1).
"""

from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.queues import INFLIGHT, data_parallel, idle, in_sequence, simulate

LAYERS, BYTES, LAYER = 4, 64 << 20, 300_000_000
"""Layers of 64 MiB that take 300 microseconds forward, and twice that backward."""


def main() -> None:
    """Print how long the step takes, when gradients are scattered, and what is idle."""
    machine = topology_of("eight-sm90")
    units = data_parallel(LAYERS, BYTES, LAYER, range(8))
    run = simulate(units, machine, max_inflight=INFLIGHT)
    barriers = simulate(in_sequence(units), machine, max_inflight=INFLIGHT)
    for title, timeline in (("overlapped", run), ("with barriers", barriers)):
        waits = idle(timeline, "compute") / 8 / 1e6
        print(
            f"{title:14} {timeline.duration / 1e6:7.1f} us, of which each device computes nothing for {waits:6.1f} us"
        )
    print()
    for layer in reversed(range(LAYERS)):
        computed = next(slot for slot in run.slots if slot.id == f"backward{layer}")
        chunks = [slot for slot in run.slots if slot.id == f"scatter{layer}" and slot.device == 0]
        first, last = min(slot.start for slot in chunks), max(slot.end for slot in chunks)
        print(
            f"layer {layer}: computed {computed.start / 1e6:7.1f} to {computed.end / 1e6:7.1f} us, "
            f"scattered {first / 1e6:7.1f} to {last / 1e6:7.1f} us in {len(chunks)} chunks"
        )


if __name__ == "__main__":
    main()

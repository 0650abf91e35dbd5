"""A ring of SimGrid's actors that sends what an all-reduce sends: `python3 simgrid_ring.py RANKS BYTES`.

Prints seconds of processor time. Run by the system's Python, since SimGrid is a package of the system:
`apt-get install python3-simgrid`.
"""

from __future__ import annotations

import sys
import tempfile
import time

from simgrid import Actor, Engine, Host, Mailbox

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="ring" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="25GBps" lat="1us"/>
</platform>
"""


def main(ranks: int, size: int) -> None:
    """Run 2 (ranks - 1) steps, in each of which every rank sends to the next one."""

    def rank(number: int) -> None:
        to, own = Mailbox.by_name(str((number + 1) % ranks)), Mailbox.by_name(str(number))
        for step in range(2 * (ranks - 1)):
            sent = to.put_async(step, size)
            own.get()
            sent.wait()

    engine = Engine([sys.argv[0], "--log=root.thresh:critical"])
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as platform:
        platform.write(PLATFORM.format(last=ranks - 1))
        platform.flush()
        engine.load_platform(platform.name)
    started = time.process_time()
    for number in range(ranks):
        Actor.create(f"rank {number}", Host.by_name(f"n{number}"), rank, number)
    engine.run()
    print(time.process_time() - started)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

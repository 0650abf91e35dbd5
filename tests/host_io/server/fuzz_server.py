"""Random connections to an endpoint, each answer beside that of an endpoint in this process.

    python tests/host_io/server/fuzz_server.py --seconds 300 --seed 1

Clients at the same time send sound, changed and repeated frames in pieces, frames that are too long or end midway, and
leave with answers unread. A client works on a PE of its own, so that its answers do not depend on the others. Seed,
client and session decide what is sent; `--seconds` or `--sessions` of each client end it. Exit code 1: something found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from served import Message, Served, frames

from tessera_reference.host_io.endpoint import MOST_BYTES, Endpoint, Journal
from tessera_reference.host_io.frames import InvalidFrame, Request, RequestFailed, read_frame, request_of
from tessera_reference.host_io.machine import Machine, MachineSize, Place
from tessera_reference.host_io.messages import KernelLaunch, MemoryRead, MemoryWrite, TensorArgument
from tessera_reference.host_io.server import closed, connect, read_address

SIZE = MachineSize(2, 2, 2, 1024)
REGION = 1 << 16
"""Bytes from address 0 of each PE that requests write."""
LONGEST_WAIT = 60.0
MOST_FINDINGS = 10
VALUES = (
    b"0",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"null",
    b"true",
    b"NaN",
    b'""',
    b"{}",
    b"[]",
    b"0.5",
    b"64.0",
)


class Fuzz:
    """The clients, and what they have seen."""

    def __init__(self, served: Served, seed: int) -> None:
        self.served = served
        self.seed = seed
        self.machine = Machine(SIZE)
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []

    async def client(self, number: int, place: Place, sessions: int, limit: float) -> None:
        """One session after the other."""
        for session in range(sessions):
            if time.monotonic() > limit or len(self.findings) >= MOST_FINDINGS:
                return
            name = f"{self.seed}/{number}/{session}"
            rng = random.Random(name)
            act = rng.choices([self.answered, self.left, self.overlong, self.half], [12, 3, 1, 1])[0]
            self.counts[f"sessions {act.__name__}"] += 1
            try:
                async with asyncio.timeout(LONGEST_WAIT):
                    await act(rng, name, place)
            except TimeoutError:
                self.findings.append(f"session {name}, {act.__name__}: no answer within {LONGEST_WAIT:g} s")
            except (OSError, AssertionError, ValueError) as error:
                self.findings.append(f"session {name}, {act.__name__}: {error!r:.500}")

    async def answered(self, rng: random.Random, name: str, place: Place) -> None:
        """Some rounds of frames on one connection, each answer of which is judged."""
        reader, writer = await connect(read_address(self.served.address))
        model = Endpoint(machine=self.machine, journal=Journal(0))
        for turn in range(rng.randint(1, 4)):
            sent = list(self.requests(rng, f"{name}/{turn}", place, rng.choice([1, 5, 50, 50, 800])))
            expected = [answer for line in sent for answer in model.exchange([line])]
            sending = asyncio.create_task(in_pieces(rng, writer, frames(sent)))
            found = [(await reader.readline()).decode().rstrip("\n") for _ in sent]
            await sending
            self.judge(name, expected, found)
        await self.require_end(reader, writer)

    async def overlong(self, rng: random.Random, name: str, place: Place) -> None:
        """Frames, and one that is too long, behind which the connection ends."""
        reader, writer = await connect(read_address(self.served.address))
        model = Endpoint(machine=self.machine, journal=Journal(0))
        sent = list(self.requests(rng, name, place, rng.randint(0, 20)))
        expected = [answer for line in sent for answer in model.exchange([line])]
        tail = rng.choice([b"", b"\n", b"\nx\n"])
        data = frames(sent) + b"x" * (MOST_BYTES + rng.choice([1, 1000, 1 << 20])) + tail
        sending = asyncio.create_task(in_pieces(rng, writer, data))
        found = (await reader.read()).decode().splitlines()
        await sending
        self.judge(name, [*expected, f'{{"refused":"a frame of more than {MOST_BYTES} bytes"}}'], found)
        await closed(writer)

    async def half(self, rng: random.Random, name: str, place: Place) -> None:
        """Frames, and the beginning of one, with which the connection ends."""
        reader, writer = await connect(read_address(self.served.address))
        model = Endpoint(machine=self.machine, journal=Journal(0))
        sent = list(self.requests(rng, name, place, rng.randint(0, 20)))
        expected = [answer for line in sent for answer in model.exchange([line])]
        sending = asyncio.create_task(in_pieces(rng, writer, frames(sent) + b'{"msg_'))
        await sending
        writer.write_eof()
        found = (await reader.read()).decode().splitlines()
        self.judge(name, [*expected, '{"refused":"the connection ended within a frame"}'], found)
        await closed(writer)

    async def left(self, rng: random.Random, name: str, place: Place) -> None:
        """Frames that change no memory, and the client is gone, with some answers unread."""
        reader, writer = await connect(read_address(self.served.address))
        count = rng.choice([0, 1, 30, 2000])
        data = frames(reading(rng, f"{name}/{number}", place) for number in range(count))
        writer.write(data[: rng.randint(0, len(data))])
        if rng.random() < 0.5:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await reader.read(1000)
        writer.transport.abort()
        self.counts["frames left"] += count
        await asyncio.sleep(0)

    def requests(self, rng: random.Random, name: str, place: Place, count: int) -> Iterator[bytes]:
        """Sound frames, changed ones, and some of them again."""
        sent: list[bytes] = []
        while len(sent) < count:
            frame = json.dumps(rng.choice([writing, reading, launching])(rng, f"{name}/{len(sent)}", place)).encode()
            if rng.random() < 0.4:
                frame = changed(rng, frame)
            if not stays_within(frame, place):
                continue
            sent.append(rng.choice(sent) if sent and rng.random() < 0.1 else frame)
            yield sent[-1]
        self.counts["frames"] += count

    def judge(self, name: str, expected: list[str], found: list[str]) -> None:
        """Refusals are the same; the answers of a pair are those of the model, or tell that the pair is in use."""
        self.counts["answers"] += len(found)
        wanted, came = by_ids(expected), by_ids(found)
        self.counts["refusals"] += len(came[None])
        problem = "" if sorted(wanted[None]) == sorted(came[None]) else "other refusals"
        if wanted.keys() != came.keys():
            problem = "other ids"
        for pair in wanted.keys() - {None}:
            in_use = [answer for answer in came[pair] if "DUPLICATE_REQUEST" in answer]
            self.counts["answers that the pair is in use"] += len(in_use)
            others = set(came[pair]) - set(in_use)
            if len(came[pair]) != len(wanted[pair]) or not others or not others <= set(wanted[pair]):
                problem = f"{came[pair]} instead of {wanted[pair]}"
            if in_use and len(wanted[pair]) == 1:
                problem = f"a pair that was given once is in use: {in_use}"
        if problem:
            self.findings.append(f"session {name}: {problem:.1000}")

    async def require_end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nothing comes behind the last answer."""
        writer.write_eof()
        rest = await reader.read()
        assert rest == b"", rest
        await closed(writer)


def by_ids(answers: list[str]) -> defaultdict[Any, list[str]]:
    """Answers by their ids; those without any by None."""
    found = defaultdict(list)
    found[None] = []
    for answer in answers:
        value = json.loads(answer)
        found[None if "refused" in value else (value["correlation_id"], value["request_id"])].append(answer)
    return found


async def in_pieces(rng: random.Random, writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send bytes in pieces of some sizes, between which others have a turn."""
    size = rng.choice([1 << 20, 1 << 16, 4096, 517]) if len(data) < 1 << 18 else 1 << 16
    with suppress(ConnectionError):
        for first in range(0, len(data), size):
            writer.write(data[first : first + size])
            await writer.drain()
            if rng.random() < 0.2:
                await asyncio.sleep(0)


def envelope(name: str, kind: str) -> Message:
    """`name` is used once, so that no two requests share a pair by chance."""
    return {"msg_type": kind, "correlation_id": name[:4], "request_id": name, "target_device": "sip:0"}


def writing(rng: random.Random, name: str, place: Place) -> Message:
    """A write of a pattern to the client's PE."""
    kind, value = rng.choice(
        [("fill_u8", 255), ("fill_fp32", 0.1), ("fill_fp16", -1.5), ("fill_u32", 7), ("zero", None)]
    )
    target = {f"dst_{field}": getattr(place, field) for field in place._fields}
    pa = 64 * rng.randrange(REGION // 64)
    pattern = {"pattern_kind": kind} | ({} if value is None else {"value": value})
    message = {"dst_pa": pa, "nbytes": 4 * rng.randint(1, 16), "src_kind": "pattern", "pattern": pattern}
    return {**envelope(name, "MemoryWrite"), **target, **message}


def reading(rng: random.Random, name: str, place: Place) -> Message:
    """A read of the client's PE."""
    source = {f"src_{field}": getattr(place, field) for field in place._fields}
    kind = rng.choice(["host_sink", "discard", None])
    message = {"src_pa": rng.randrange(REGION), "nbytes": rng.randint(0, 4096), "dst_kind": kind}
    return {**envelope(name, "MemoryRead"), **source, **message}


def launching(rng: random.Random, name: str, place: Place) -> Message:
    """A launch on the client's PE, of a built-in kernel, or of what lies at an address."""
    deploy = {f"deploy_{field}": getattr(place, field) for field in place._fields}
    pa = 64 * rng.randrange(REGION // 64)
    kernel: Message = {
        "name": rng.choice(["nop", "fill", "copy", "none"]),
        "kind": "builtin",
        **deploy,
        "nbytes_code": 0,
    }
    if rng.random() < 0.5:
        kernel |= {"kind": "deployed", "deploy_pa": pa, "nbytes_code": rng.randint(1, 64)}
    shard = {**place._asdict(), "pa": pa, "nbytes": 64, "offset_bytes": 0}
    tensor = {"arg_kind": "tensor", "tensor_pa_map": {"shards": [shard] * rng.randint(1, 2)}}
    scalar = {"arg_kind": "scalar", "dtype": "i32", "value": rng.randrange(-5, 5)}
    args = rng.choice([[], [tensor], [tensor, scalar], [tensor, tensor]])
    return {**envelope(name, "KernelLaunch"), "kernel_ref": kernel, "args": args}


def changed(rng: random.Random, frame: bytes) -> bytes:
    """A frame with one thing changed, which is still one line."""
    first, last = sorted(rng.choices(range(len(frame) + 1), k=2))
    match rng.randrange(6):
        case 0:
            frame = frame[:first] + bytes([rng.randrange(256)]) + frame[first + 1 :]
        case 1:
            frame = frame[:first] + frame[min(last, first + 9) :]
        case 2:
            frame = frame[:last] + frame[first:]
        case 3:
            frame = frame[:first]
        case 4:
            starts = [place + 2 for place in range(len(frame)) if frame.startswith(b": ", place)]
            start = rng.choice(starts)
            end = min(place for mark in b",}" if (place := frame.find(mark, start)) >= 0)
            frame = frame[:start] + rng.choice(VALUES) + frame[end:]
        case 5:
            frame = rng.choice([b"", b" ", b"{}", b"[" * 5000, b'{"a":' * 100, b"\xff", b"\xef\xbb\xbf" + frame])
    return frame.replace(b"\n", b" ")


def stays_within(frame: bytes, place: Place) -> bool:
    """Return True unless a frame is a request for another PE or region than the client's."""
    try:
        request = request_of(read_frame(frame))
    except (InvalidFrame, RequestFailed):
        return True
    return all(other == place and pa + nbytes <= 2 * REGION for other, pa, nbytes in touched(request))


def touched(request: Request) -> Iterator[tuple[Place, int, int]]:
    """PE, address and size of everything that a request may write, or look at."""
    match request:
        case MemoryWrite():
            yield Place(request.dst_sip, request.dst_cube, request.dst_pe), request.dst_pa, request.nbytes
        case MemoryRead():
            yield Place(request.src_sip, request.src_cube, request.src_pe), request.src_pa, request.nbytes
        case KernelLaunch():
            kernel = request.kernel_ref
            if kernel.deploy_pa is not None:
                yield (
                    Place(kernel.deploy_sip, kernel.deploy_cube, kernel.deploy_pe),
                    kernel.deploy_pa,
                    kernel.nbytes_code,
                )
            for argument in request.args:
                for shard in argument.tensor_pa_map.shards if isinstance(argument, TensorArgument) else ():
                    yield Place(shard.sip, shard.cube, shard.pe), shard.pa, shard.nbytes


async def run(fuzz: Fuzz, sessions: int, seconds: float) -> int:
    """All clients; the memory of the endpoint after the first tenth of the time."""
    limit = time.monotonic() + seconds
    clients = [
        asyncio.create_task(fuzz.client(number, place, sessions, limit))
        for number, place in enumerate(fuzz.machine.places())
    ]
    await asyncio.wait(clients, timeout=seconds / 10)
    rss = fuzz.served.rss()
    await asyncio.gather(*clients)
    return rss


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--sessions", type=int, default=1 << 60, help="of each client")
    options = parser.parse_args()
    machine = f"{SIZE.sips}x{SIZE.cubes}x{SIZE.pes}"
    served = Served("--tcp", "127.0.0.1:0", "--machine", machine, "--queue-depth", str(SIZE.queue_depth))
    fuzz, start = Fuzz(served, options.seed), served.rss()
    early = asyncio.run(run(fuzz, options.sessions, options.seconds))
    late = served.rss()
    ended = served.end()
    if ended != (0, ""):
        fuzz.findings.append(f"the endpoint ended with {ended[0]}: {ended[1]:.1000}")
    for what, count in sorted(fuzz.counts.items()):
        print(f"{what}: {count:,}")
    print(f"memory of the endpoint: {start >> 10:,} KiB, {early >> 10:,} KiB early, {late >> 10:,} KiB at the end")
    print(*fuzz.findings, f"{len(fuzz.findings)} findings", sep="\n")
    return 1 if fuzz.findings else 0


if __name__ == "__main__":
    sys.exit(main())

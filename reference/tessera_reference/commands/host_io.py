"""`tessera-reference host-io`: the endpoint behind a socket, frames sent to one, and programs as messages."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import signal
import sys
from asyncio import StreamReader, StreamWriter
from typing import Any, TextIO

from .. import __version__
from ..host_io.endpoint import Endpoint
from ..host_io.machine import MOST_PLACES, Machine, MachineSize, Place, described, description
from ..host_io.server import CHUNK, Address, AddressProblem, Listener, Server, closed, connect, read_address
from ..ir.types import own_dims
from ..mesh.topology import default
from ..numerics.environment import check_environment
from ..runtime.bridged import LENGTH, RANKS, Comparison, counted, image_of, run_kernel
from .program import BadInput, add_extent_option, compile_file, extents_given, read_bytes, selected, write_file

# `tessera-reference host-io run`: a function run by the runtime and by messages, with the frames and a comparison.


def register_run(parser: Any) -> None:
    """Add the options of `host-io run`."""
    parser.add_argument("file", metavar="FILE", help="a program of the language")
    parser.add_argument("--function", metavar="NAME", help="the function; needed when there are several")
    parser.add_argument("--ranks", type=int, default=RANKS, metavar="N", help="ranks, each a PE (default: %(default)s)")
    add_extent_option(parser, f"the extent of an open dimension; {LENGTH} unless given")
    parser.set_defaults(run=run, source_text="")


def run(options: argparse.Namespace) -> int:
    """Print each frame with its answer, and the comparison; return 1 if outputs differ. Raises `BadInput`."""
    check_environment()
    module, function = selected(compile_file(options).modules, options.function)
    most = min(len(list(Endpoint().machine.places())), len(default().devices))
    if not 1 <= options.ranks <= most:
        raise BadInput(f"--ranks is {options.ranks}, expected 1 to {most}")
    requested = extents_given(options, least=1)
    extents = dict.fromkeys(own_dims(parameter.type for parameter in function.parameters), LENGTH) | requested
    inputs = [counted(function, extents, rank) for rank in range(options.ranks)]
    shapes = {name: array.shape for name, array in inputs[0].items() if array.shape}
    comparison = run_kernel(Endpoint(), image_of(module, function, shapes), function.name, inputs)
    _show(comparison)
    return 0 if comparison.equal else 1


def _show(comparison: Comparison) -> None:
    for frame, answer in comparison.exchanges:
        print(f"> {frame}\n< {answer}")
    for output in comparison.outputs:
        verdict = "equal" if output.own == output.by_messages else "DIFFERENT"
        print(f"{output.name}: {len(output.own)} bytes, {verdict} by the runtime and by messages")
    for gap in comparison.gaps:
        print(f"not expressed: {gap}")


# `tessera-reference host-io`: the endpoint behind a socket, frames sent to one, and programs as messages.


UNANSWERED = 1

EXAMPLES = """
examples:
  tessera-reference host-io serve --unix io.sock
  tessera-reference host-io serve --tcp 127.0.0.1:0 --machine 1x2x3 --description io.json
  tessera-reference host-io send requests.jsonl --unix io.sock
  tessera-reference host-io run examples/attention.tsr
"""


def register_host_io(subparsers: Any) -> None:
    """Add `host-io`."""
    parser = subparsers.add_parser(
        "host-io",
        help="an IO_CPU endpoint behind a socket, frames for one, and programs as messages",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _register_serve(actions.add_parser("serve", help="answer frames, one a line, until a signal ends it"))
    _register_send(actions.add_parser("send", help="send frames, one a line, and print the answers"))
    register_run(actions.add_parser("run", help="run a function by the runtime and by messages, and compare"))


def _register_serve(parser: argparse.ArgumentParser) -> None:
    size = described()["size"]
    _add_address(parser, "listen on", "; port 0 is any free one")
    parser.add_argument("--allow-remote", action="store_true", help="listen where other machines can connect, too")
    parser.add_argument(
        "--machine",
        default=f"{size['sips']}x{size['cubes']}x{size['pes']}",
        metavar="SIPSxCUBESxPES",
        help="SIPs, cubes of each and PEs of each cube (default: %(default)s)",
    )
    parser.add_argument(
        "--queue-depth",
        default=size["queue_depth"],
        type=int,
        metavar="N",
        help="how many requests may be unanswered, of which a connection has one (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="answer out of order, by a seed: clients match ids")
    parser.add_argument(
        "--fail", action="append", default=[], metavar="SIP.CUBE.PE", help="a PE that fails every request"
    )
    parser.add_argument("--reads", metavar="FILE.jsonl", help="append the data of reads: ids and bytes, one a line")
    parser.add_argument(
        "--description",
        metavar="FILE.json",
        help="write what the endpoint has, for tessera-conformance run --impl=hostio:ADDRESS,description=FILE.json",
    )
    parser.set_defaults(run=serve, source_text="")


def _register_send(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="frames, one a line; - for standard input")
    _add_address(parser, "connect to")
    parser.set_defaults(run=send, source_text="")


def _add_address(parser: argparse.ArgumentParser, what: str, more: str = "") -> None:
    address = parser.add_mutually_exclusive_group(required=True)
    address.add_argument("--unix", metavar="PATH", help=f"{what} a socket file")
    address.add_argument("--tcp", metavar="HOST:PORT", help=f"{what} a port{more}")


def _address(options: argparse.Namespace) -> Address:
    text = f"tcp:{options.tcp}" if options.unix is None else f"unix:{options.unix}"
    try:
        return read_address(text)
    except AddressProblem as problem:
        raise BadInput(str(problem)) from None


def serve(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM. Raises `BadInput`."""
    machine = Machine(_size(options.machine, options.queue_depth))
    machine.failing = frozenset(_place(place, machine) for place in options.fail)
    if options.description is not None:
        _describe(machine, options.description)
    try:
        listener = Listener(_address(options), allow_remote=options.allow_remote)
    except AddressProblem as problem:
        raise BadInput(str(problem)) from None
    try:
        with contextlib.nullcontext() if options.reads is None else _opened(options.reads) as reads:
            asyncio.run(_serve(Server(machine, options.seed, reads), listener))
    finally:
        listener.close()
    return 0


def _opened(path: str) -> TextIO:
    """Open a file for appending. Raises `BadInput`."""
    try:
        return open(path, "a", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


async def _serve(server: Server, listener: Listener) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    listener.socket.listen()
    print(f"listening on {listener.address}", flush=True)
    await server.serve(listener, stop)


def _describe(machine: Machine, path: str) -> None:
    """Write the description of an endpoint. Raises `BadInput`."""
    message = {"name": "tessera-reference", "version": __version__, **description(machine)}
    write_file(path, json.dumps(message, indent=2) + "\n")


def _place(text: str, machine: Machine) -> Place:
    """Return the PE that `--fail` names. Raises `BadInput`."""
    match = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", text)
    place = Place(*map(int, match.groups())) if match else None
    if place is None or not machine.has(place):
        raise BadInput(f"--fail {text}: expected a PE of the machine, such as 0.1.2")
    return place


def _size(text: str, queue_depth: int) -> MachineSize:
    """Return the size that `--machine` and `--queue-depth` give. Raises `BadInput`."""
    counts = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})", text)
    sips, cubes, pes = map(int, counts.groups()) if counts else (0, 0, 0)
    if not 1 <= sips * cubes * pes <= MOST_PLACES:
        raise BadInput(f"--machine {text}: expected three counts such as 2x2x4, of at most {MOST_PLACES} PEs")
    if queue_depth < 1:
        raise BadInput(f"--queue-depth {queue_depth}: expected at least 1")
    return MachineSize(sips, cubes, pes, queue_depth)


def send(options: argparse.Namespace) -> int:
    """Send every frame and print the answers; return 1 if the connection ended early. Raises `BadInput`."""
    frames = read_bytes(options)
    count = frames.count(b"\n") + (not frames.endswith(b"\n") and bool(frames))
    try:
        answers = asyncio.run(_send(_address(options), frames if frames.endswith(b"\n") else frames + b"\n"))
    except AddressProblem as problem:
        raise BadInput(str(problem)) from None
    if answers < count:
        print(f"{answers} of {count} frames were answered before the endpoint ended the connection", file=sys.stderr)
        return UNANSWERED
    return 0


async def _send(address: Address, frames: bytes) -> int:
    """Send frames and print answers at the same time; return the number of answers."""
    reader, writer = await connect(address)
    sending = asyncio.create_task(_send_all(writer, frames))
    answers = await _print_all(reader)
    await sending
    await closed(writer)
    return answers


async def _send_all(writer: StreamWriter, frames: bytes) -> None:
    """Send everything, and end the host's side of the connection."""
    try:
        for first in range(0, len(frames), CHUNK):
            writer.write(frames[first : first + CHUNK])
            await writer.drain()
        writer.write_eof()
    except OSError:
        pass  # the endpoint ended the connection; its answers give the reason


async def _print_all(reader: StreamReader) -> int:
    """Print lines until the endpoint ends the connection; return their number."""
    count = 0
    try:
        while chunk := await reader.read(CHUNK):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            count += chunk.count(b"\n")
    except ConnectionError:
        pass
    return count

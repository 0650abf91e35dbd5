"""An IO_CPU endpoint that nobody made from the reference: the messages of the document, and nothing beside.

It checks messages and routes by the tags; it models time, so that it keeps no bytes. Where the document is silent it
does what comes naturally in Python: members that it does not know are passed over, `True` is a number, zero bytes are
done at once, a response says how long it took. `python endpoint.py PATH DEFECT...` listens at a Unix socket.
"""

import asyncio
import json
import sys

PLACES, MEMORY = {(0, 0, 0), (0, 0, 1)}, range(0x1000, 0x9000)
FILLS = {"fill_u8": 1, "fill_u16": 2, "fill_u32": 4, "fill_fp16": 2, "fill_fp32": 4}
DEFECTS = sys.argv[2:]


class Refused(Exception):
    """A request that is answered with an error code."""


def member(message, name, kind, optional=False):
    value = message.get(name)
    if not isinstance(value, kind) and not (optional and value is None):
        raise Refused("BAD_FIELD", name)
    return value


def one_of(message, name, values, default=None):
    value = member(message, name, str, optional=default is not None)
    chosen = default if value is None else value
    if chosen not in values:
        raise Refused("BAD_FIELD", name)
    return chosen


def number(message, name, least=0):
    if member(message, name, int) < least:
        raise Refused("BAD_FIELD", name)
    return message[name]


def placed(message, prefix, pa, nbytes):
    sip, cube, pe = (number(message, f"{prefix}{name}") for name in ("sip", "cube", "pe"))
    if (sip, 0 if prefix == "src_" and "any_cube" in DEFECTS else cube, pe) not in PLACES:
        raise Refused("NO_SUCH_PE", f"{sip}.{cube}.{pe}")
    if not MEMORY.start <= pa <= pa + nbytes <= MEMORY.stop:
        raise Refused("BAD_ADDRESS", hex(pa))


def write(message):
    placed(message, "dst_", number(message, "dst_pa"), number(message, "nbytes"))
    one_of(message, "dst_mem_kind", ("HBM", "AUTO"), "AUTO")
    if one_of(message, "src_kind", ("pattern", "host_buffer_ref")) == "pattern":
        pattern = member(message, "pattern", dict)
        kind = one_of(pattern, "pattern_kind", ("zero", *FILLS))
        if kind == "fill_fp16" and "no_fp16" in DEFECTS:
            raise Refused("BAD_FIELD", kind)
        value = None if kind == "zero" else member(pattern, "value", (int, float), optional="no_value" in DEFECTS)
        whole = isinstance(value, int) and 0 <= value < 256 ** FILLS[kind]
        if kind.startswith("fill_u") and value is not None and not whole:
            raise Refused("BAD_FIELD", "value")


def read(message):
    placed(message, "src_", number(message, "src_pa"), number(message, "nbytes"))
    one_of(message, "dst_kind", ("host_sink", "discard"), "host_sink")


def launch(message):
    kernel = member(message, "kernel_ref", dict)
    if one_of(kernel, "kind", ("deployed", "builtin")) == "builtin":
        raise Refused("NO_SUCH_KERNEL", member(kernel, "name", str))
    member(kernel, "name", str)
    placed(kernel, "deploy_", number(kernel, "deploy_pa"), number(kernel, "nbytes_code", 1))
    one_of(message, "failure_policy", ("fail_fast", "collect_all"), "fail_fast")
    for name in ("grid", "meta"):
        member(message, name, dict, optional=True)
    for argument in (member({"args": listed}, "args", dict) for listed in member(message, "args", list)):
        if one_of(argument, "arg_kind", ("tensor", "scalar")) == "scalar":
            one_of(argument, "dtype", ("i32", "i64", "fp16", "fp32", "bool"))
            member(argument, "value", (int, float))
            continue
        for shard in member(member(argument, "tensor_pa_map", dict), "shards", list):
            number(member({"shard": shard}, "shard", dict), "offset_bytes")
            placed(shard, "", number(shard, "pa"), number(shard, "nbytes"))


HANDLERS = {"MemoryWrite": write, "MemoryRead": read, "KernelLaunch": launch}


def answer(frame):
    try:
        message = json.loads(frame)
        ids = {name: member(message, name, str) for name in ("correlation_id", "request_id")}
    except (ValueError, AttributeError, Refused):
        return None
    if "no_answer" in DEFECTS and message.get("msg_type") == "MemoryRead":
        return None
    completion = {"ok": True, "error_code": None, "error_message": None}
    try:
        one_of(message, "target_device", ("sip:0",))
        for name in ("timestamp_tag", "debug_label"):
            member(message, name, str, optional=True)
        HANDLERS[one_of(message, "msg_type", HANDLERS)](message)
    except Refused as reason:
        completion = {"ok": False, "error_code": reason.args[0], "error_message": f"refused: {reason.args[1]}"}
    return {**ids, "completion": completion, "latency_ns": 250}


async def serve(reader, writer):
    async for frame in reader:
        if (found := answer(frame)) is not None:
            writer.write(json.dumps(found).encode() + b"\n")
    writer.close()


async def main():
    async with await asyncio.start_unix_server(serve, sys.argv[1], limit=1 << 22) as server:
        await server.serve_forever()


asyncio.run(main())

"""The effect of launches on the memory of the PEs that their shards name (D7; AMB-HIO-40, -42, -44, -47, -56, -57)."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tessera_conformance.chapters.abi.host_io.kit.elements import binary, element, filled
from tessera_conformance.chapters.abi.host_io.kit.exchange import pair_of
from tessera_conformance.chapters.abi.host_io.kit.launches import (
    EFFECTS,
    Part,
    built_in,
    has_built_in,
    judge_pairing,
    of_one_sip,
    parts,
    run,
    working,
)
from tessera_conformance.chapters.abi.host_io.kit.memory import BACKGROUND, host_of
from tessera_conformance.chapters.abi.host_io.kit.messages import ABSENT, deploy, scalar
from tessera_conformance.marks import clause, feature

NUMBERS = [
    *(Decimal(name) for name in ("0", "-0.0", "1", "-1", "0.1", "-0.3", "3.5e30", "-3.5e30", "1e-40", "-7e-42")),
    binary(2**24 - 1, 0),
    binary(1, -149),
    binary(-(2**24 - 1), -149),
]
"""Numbers of fp32 whose sums and products with each other round, cancel, and leave the normal range."""


def stored(host, part, data):
    """Writes of these bytes to a shard, four at a time where it is aligned to them (AMB-HIO-35)."""
    kind, size = ("fill_u8", 1) if part.pa % 4 else ("fill_u32", 4)
    words = (int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size))
    return [host.fill(part.place, part.pa + size * number, size, kind, word) for number, word in enumerate(words)]


def operands(turn):
    """The elements of two tensors on one PE; each PE has others."""
    turned = NUMBERS[turn:] + NUMBERS[:turn]
    return [b"".join(element("fill_fp32", value) for value in these) for these in (NUMBERS, turned)]


def judge(host, places, order, name, value):
    """Launch a kernel whose tensors have a shard on each place, listed in another order; compare all memory."""
    effect, size = EFFECTS[name], 4 * len(NUMBERS)
    tensors = [number for number, parameter in enumerate(effect.parameters) if parameter == "tensor"]
    at = {number: host.base + 257 + 512 * number for number in tensors}
    writes, before = [], {}
    for turn, place in enumerate(places):
        writes.append(host.fill(place, host.base, 2048))
        for number, data in zip(tensors, operands(turn + 1), strict=False):
            before[turn, number] = data
            writes += stored(host, Part(place, at[number], size), data)
    host.done(*writes)
    shards = {
        number: [Part(place, at[number], size, size * turn) for turn, place in enumerate(places)] for number in tensors
    }
    args = [
        parts(*order(shards[number])) if number in tensors else scalar(kind, value)
        for number, kind in enumerate(effect.parameters)
    ]
    run(host, name, *args)

    def left(turn, scalar_value):
        background = bytes([BACKGROUND] * size)
        given = [
            before.get((turn, number), background) if number in tensors else scalar_value for number in range(len(args))
        ]
        memory = bytearray([BACKGROUND] * 2048)
        for number in tensors:
            first = at[number] - host.base
            memory[first : first + size] = effect.made(given) if number == effect.target else given[number]
        return bytes(memory)

    for turn, place in enumerate(places):
        expected = left(turn, value)
        if isinstance(value, Decimal) and (twice := left(turn, Decimal(float(value)))) != expected:
            actual = host.bytes_of(place, host.base, 2048)
            host.check.reading("AMB-HIO-36", "rounded by way of fp64", actual == twice)
        host.holds(place, host.base, expected, f"the memory of PE {dict(place)} after {name}")


MARKS = {"i32": "HIO-D7-38", "fp32": "HIO-D7-41"}
KERNELS = [
    pytest.param("copy", None, id="copy"),
    pytest.param("fill", -2, id="fill"),
    pytest.param("add_fp32", None, id="add"),
    pytest.param("scale_fp32", Decimal("0.1"), id="scale"),
]


@clause("HIO-D7-01", "HIO-D7-37", "HIO-D7-17", "HIO-D7-18", "HIO-D7-22", "HIO-D7-23", "HIO-D7-47")
@feature("device-memory-probe")
@pytest.mark.parametrize(("name", "value"), KERNELS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_built_in_kernel_computes_on_every_shard(impl, check, name, value, count):
    """On PEs of one SIP, at odd addresses, results are exact and rounded once; bytes around the shards stay."""
    host = host_of(impl, check)
    judge(host, of_one_sip(host, count), list, name, value)


@clause("HIO-D7-01", "HIO-D7-24", "HIO-D7-47")
@feature("device-memory-probe")
@pytest.mark.parametrize(("name", "value"), KERNELS)
def test_the_order_in_which_shards_are_listed_does_not_matter(impl, check, name, value):
    """Each tensor lists its shards in another order; those of one PE belong together (AMB-HIO-57)."""
    host = host_of(impl, check)
    judge_pairing(host)
    turns = iter(range(1, 9))

    def order(shards):
        turn = next(turns) % len(shards)
        return [*reversed(shards[turn:]), *shards[:turn]]

    judge(host, of_one_sip(host, 4), order, name, value)


SCALARS = [
    *(
        pytest.param("i32", value, id=f"i32-{value}")
        for value in (0, 1, -1, 255, 256, -32769, 16777217, 2**31 - 1, -(2**31))
    ),
    *(
        pytest.param("fp32", Decimal(value), id=f"fp32-{value}")
        for value in ("1", "-1", "0.1", "16777217", "1.00000005960464477539062500000001", "1e-41", "-0.5", "-0.0")
    ),
]


@clause("HIO-D7-46", "HIO-D7-48", "HIO-D7-01")
@feature("device-memory-probe")
@pytest.mark.parametrize(
    ("dtype", "value"),
    [pytest.param(*scalar.values, id=scalar.id, marks=clause(MARKS[scalar.values[0]])) for scalar in SCALARS],
)
def test_a_scalar_reaches_the_kernel_whole(impl, check, dtype, value):
    """An i32 of every width through `fill`; a number through `scale_fp32`, rounded to fp32 once (AMB-HIO-36)."""
    host = host_of(impl, check)
    judge(host, of_one_sip(host, 1), list, "fill" if dtype == "i32" else "scale_fp32", value)


@clause("HIO-D7-01", "HIO-D7-28", "HIO-D7-29", "HIO-D7-32", "HIO-D3-09")
@feature("device-memory-probe")
@pytest.mark.parametrize("member", ["grid", "meta", "debug_label", "timestamp_tag"])
def test_members_that_say_nothing_to_the_kernel_change_nothing(impl, check, member):
    """grid, meta, labels and tags: absent, null, empty, and with words that an endpoint might obey (AMB-HIO-23)."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    free_form = [ABSENT, None, {}, {"x": 0, "y": 2**40}, {"blocks": [0], "dry_run": True, "pe": 9}, {"text": "a" * 900}]
    texts = [ABSENT, None, "", "skip", "collect_all", "a" * 900]
    for number, text in enumerate(texts if member in ("debug_label", "timestamp_tag") else free_form):
        expected = host.painted(place, host.base, 96)
        part = Part(place, host.base + 32, 32)
        run(host, "fill", parts(part), scalar("i32", number), **{member: text})
        expected[32:64] = filled("fill_u32", number, 32)
        host.holds(place, host.base, bytes(expected), f"a launch with {member} {text!r:.40}")


PLANTED = [
    *(pytest.param(name, marks=clause("HIO-D7-14")) for name in ("source", "source_code", "code")),
    *(pytest.param(name, marks=clause("HIO-D7-15")) for name in ("ir", "mlir", "binary")),
    *(pytest.param(name, marks=clause("HIO-D7-33")) for name in ("data", "tensor_data", "payload")),
]


@feature("device-memory-probe")
@pytest.mark.parametrize("member", PLANTED)
def test_a_launch_that_carries_code_or_data_does_not_run(impl, check, member):
    """A planted member in the message, in the kernel or in a tensor: refused, and nothing is written (AMB-HIO-21).

    The same launch without it runs.
    """
    host = host_of(impl, check)
    place = host.machine.places[0]
    text = "module m { kernel fill() { } }" * 8
    for where in ("message", "kernel", "tensor"):
        message = working(host, 1, Part(place, host.base, 32))
        host.done(host.another(message))
        expected = bytes(host.painted(place, host.base, 32))
        holder = {"message": message, "kernel": message["kernel_ref"], "tensor": message["args"][0]}[where]
        holder[member] = text
        taken = host.send(message).completions[0]["ok"]
        check.reading("AMB-HIO-21", "a receiver passes over what it does not know", taken)
        check.equal(taken, False, f"success of a launch with {member} in the {where}")
        host.holds(place, host.base, expected, "memory after the refused launch")


@clause("HIO-D7-37")
@feature("device-memory-probe")
def test_a_built_in_kernel_that_does_not_exist_is_refused(impl, check):
    """Another name, and the names of the endpoint's own in other letters; nothing is written (AMB-HIO-25)."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    expected = bytes(host.painted(place, host.base, 32))
    names = ["no such kernel", *(f"{builtin}_" for builtin in host.machine.builtins)]
    for name in names:
        message = built_in(host, name, parts(Part(place, host.base, 32)), scalar("i32", 1))
        host.fails(message, f"a launch of the built-in {name}")
        host.holds(place, host.base, expected, "memory after the refused launch")


@clause("HIO-D7-37", "HIO-D7-09", "HIO-D7-10", "HIO-D7-11", "HIO-D7-12")
@feature("device-memory-probe")
def test_the_place_of_a_built_in_kernel_is_not_looked_at(impl, check):
    """It has no binary: a place that does not exist, and any size, are as good as another (AMB-HIO-40)."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    expected = host.painted(place, host.base, 32)
    launch = host.builtin_launch()
    strange = {"deploy_sip": 2**31 - 1, "deploy_cube": 4000, "deploy_pe": 99}
    for members in ({}, strange, {"nbytes_code": 2**40}):
        host.done(host.another({**launch, "kernel_ref": {**launch["kernel_ref"], **members}}))
    kernel = host.builtin("no such kernel", deploy_sip=2**31 - 1)
    host.fails(host.launch(kernel, []), "a launch of no kernel from no place")
    host.done(host.fill(place, host.base, 32))
    host.holds(place, host.base, bytes(expected), "memory that is written afterwards")


OBSERVED = {
    "i32": ("HIO-D7-38", "int32", (0, -1, 2**31 - 1, -(2**31))),
    "i64": ("HIO-D7-39", "int64", (0, -1, 2**53 + 1, 2**63 - 1, -(2**63), 2**32)),
    "fp16": ("HIO-D7-40", "fp16", (0, 1, Decimal("-0.0"), 65504, Decimal("-6e-8"), Decimal("0.1"))),
    "fp32": ("HIO-D7-41", "fp32", (0, 1, Decimal("-0.0"), Decimal("3.4e38"), Decimal("-1e-45"), Decimal("0.1"))),
    "bool": ("HIO-D7-42", "bool", (True, False)),
}
"""Values of each dtype, with its clause and its name in a program."""


@clause("HIO-D7-46", "HIO-D7-48", "HIO-D7-27")
@feature("device-memory-probe", "host-buffer-ref", "module-compiler")
@pytest.mark.parametrize(
    "dtype", [pytest.param(dtype, marks=clause(row[0])) for dtype, row in OBSERVED.items()], ids=list(OBSERVED)
)
def test_the_kernel_of_a_deployed_image_sees_the_value_of_a_scalar(impl, check, dtype):
    """It writes the value to memory; presumes that an image is run at all, which another shows (AMB-HIO-56)."""
    host = host_of(impl, check)
    _, name, values = OBSERVED[dtype]
    other = "i64" if dtype == "i32" else "i32"
    shown = writing_scalars(host, OBSERVED[other][1])(other, 77)
    check.given(shown == encoded(other, 77), "an image that was written to memory is run (AMB-HIO-56)")
    write = writing_scalars(host, name)
    for value in values:
        check.equal(write(dtype, value).hex(), encoded(dtype, value).hex(), f"the {dtype} {value} that the kernel sees")


def encoded(dtype, value):
    """The bytes of a scalar in memory."""
    if dtype.startswith("fp"):
        return element(f"fill_{dtype}", value)
    return int(value).to_bytes({"bool": 1, "i32": 4, "i64": 8}[dtype], "little", signed=dtype != "bool")


def writing_scalars(host, name):
    """Deploy a kernel that leaves a scalar of this dtype in memory; return a launch of it as a function."""
    formula = "x != v" if name == "bool" else "x * v"
    kernel = deployed(host, f"module m {{ kernel k(v: {name}, x: tensor<1x{name}>) {{ x = {formula}; }} }}")
    place, target = host.machine.places[0], host.base

    def write(dtype, value):
        neutral = encoded(dtype, 0 if dtype == "bool" else 1)
        size = len(neutral)
        host.done(*(host.fill(place, target + at, 1, value=byte) for at, byte in enumerate(neutral)))
        args = [scalar(dtype, value), parts(Part(place, target, size))]
        answered = host.send(host.launch(kernel, args, target_device=host.machine.device(place)))
        return host.bytes_of(place, target, size) if answered.completions[0]["ok"] else b""

    return write


def deployed(host, source, name="k"):
    """Write the image of a module behind the first page of the first PE; return a reference to its kernel."""
    image = bytes.fromhex(host.check.returns(host.impl.abi.compile(source=source), "the kernel is compiled")["image"])
    place, pa = host.machine.places[0], host.base + 4096
    message = host.copy_in(place, pa, len(image))
    host.done(message, buffers={pair_of(message): image})
    return {"name": name, "kind": "deployed", "deploy_pa": pa, **deploy(place), "nbytes_code": len(image)}


def presume_run(host, completion, before):
    """Presume that a launch ran an image in memory, which it did not take for other bytes (AMB-HIO-56)."""
    changed = host.bytes_of(host.machine.places[0], host.base, len(before)) != before
    host.check.given(completion["ok"] and changed, "an image that was written to memory is run (AMB-HIO-56)")


@clause("HIO-D7-01", "HIO-D7-36", "HIO-D7-46")
@feature("device-memory-probe", "host-buffer-ref", "module-compiler")
def test_a_deployed_kernel_runs_with_the_extents_and_the_image_of_each_launch(impl, check):
    """Three, five and two elements; then another kernel of the same name, at the same address (AMB-HIO-56)."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    launches = 0
    for factor in (3, 5):
        formula = f"x * {factor} + v"
        kernel = deployed(host, f"module m {{ kernel k(N: int32, v: int32, x: tensor<Nxint32>) {{ x = {formula}; }} }}")
        for count in (3, 5, 2):
            host.done(*(host.fill(place, host.base + 4 * at, 4, "fill_u32", 10 + at) for at in range(6)))
            args = [scalar("i32", count), scalar("i32", 4), parts(Part(place, host.base, 4 * count))]
            answered = host.send(host.launch(kernel, args, target_device=host.machine.device(place)))
            if not launches:
                presume_run(host, answered.completions[0], b"".join(encoded("i32", 10 + at) for at in range(6)))
            check.true(
                answered.completions[0]["ok"], f"the launch over {count} elements succeeds", answered.completions
            )
            launches += 1
            values = [factor * (10 + at) + 4 if at < count else 10 + at for at in range(6)]
            expected = b"".join(encoded("i32", value) for value in values)
            host.holds(place, host.base, expected, f"{count} elements of {formula}, and those behind them")


@clause("HIO-D7-05", "HIO-D7-36")
@feature("device-memory-probe", "host-buffer-ref", "module-compiler")
def test_a_launch_runs_the_kernel_of_its_name(impl, check):
    """Two kernels of one image, at one address, by turns (AMB-HIO-56)."""
    host = host_of(impl, check)
    place, part = host.machine.places[0], Part(host.machine.places[0], host.base, 16)
    bodies = "kernel k(x: tensor<4xint32>) { x = x * 3; } kernel other(x: tensor<4xint32>) { x = x + 1; }"
    kernel = deployed(host, f"module m {{ {bodies} }}")
    host.done(host.fill(place, host.base, 16, "fill_u32", 7))
    for launches, (name, expected) in enumerate((("k", 21), ("other", 22), ("k", 66))):
        launch = host.launch(kernel | {"name": name}, [parts(part)], target_device=host.machine.device(place))
        completion = host.send(launch).completions[0]
        if not launches:
            presume_run(host, completion, encoded("i32", 7) * 4)
        check.true(completion["ok"], f"the launch of {name} succeeds", completion)
        host.holds(place, host.base, encoded("i32", expected) * 4, f"what {name} has left")


@clause("HIO-D7-36", "HIO-D7-37")
@feature("device-memory-probe", "host-buffer-ref", "module-compiler")
def test_a_deployed_kernel_may_have_the_name_of_a_built_in_one(impl, check):
    """The kind says which one runs: the deployed `fill` adds its scalar to what the built-in one has filled."""
    host = host_of(impl, check)
    place, part = host.machine.places[0], Part(host.machine.places[0], host.base, 16)
    kernel = deployed(host, "module m { kernel fill(x: tensor<4xint32>, v: int32) { x = x + v; } }", "fill")
    host.done(host.fill(place, host.base, 16, "fill_u32", 7))
    value = 7
    if has_built_in(host, "fill"):
        run(host, "fill", parts(part), scalar("i32", 30))
        value = 30
    args = [parts(part), scalar("i32", 4)]
    answered = host.send(host.launch(kernel, args, target_device=host.machine.device(place)))
    presume_run(host, answered.completions[0], encoded("i32", value) * 4)
    host.holds(place, host.base, encoded("i32", value + 4) * 4, "what the deployed kernel left")


@clause("HIO-D7-13", "HIO-D7-36")
@feature("device-memory-probe", "host-buffer-ref", "module-compiler")
def test_a_binary_that_is_written_over_an_image_is_the_one_that_is_launched(impl, check):
    """A pattern over the whole image is a kernel that computes nothing (AMB-HIO-56)."""
    host = host_of(impl, check)
    place = host.machine.places[0]
    kernel = deployed(host, "module m { kernel k(x: tensor<4xint32>) { x = x + 1; } }")
    host.done(host.fill(place, host.base, 16, "fill_u32", 7))
    args = [parts(Part(place, host.base, 16))]
    answered = host.send(host.launch(kernel, args, target_device=host.machine.device(place)))
    value = 8 if answered.completions[0]["ok"] else 7
    host.holds(place, host.base, encoded("i32", value) * 4, "what the image left")
    host.done(host.fill(place, kernel["deploy_pa"], kernel["nbytes_code"], "fill_u8", 1))
    host.done(host.launch(kernel, args, target_device=host.machine.device(place)))
    host.holds(place, host.base, encoded("i32", value) * 4, "what the binary behind it left")

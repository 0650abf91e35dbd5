"""The listing of section 5, run with the implementation's Python binding (runtime specification, 5; AMB-RT-169)."""

from __future__ import annotations

import struct

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import compiled, devices, machine, refused
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, judges

SOURCE = """module listing {
  kernel scaled(X: tensor<4x8xfp32>, Y: tensor<4x8xfp32>, O: tensor<4x8xfp32>, B: int32, L: int32, scale: fp32) {
    O = X * scale + Y;
  }
  kernel filled(X: tensor<4x8xfp32>, B: int32) { X[0:4, 0:8] = 3.0; }
}
"""
X = tensor_of("fp32", [[float(8 * i + j) for j in range(8)] for i in range(4)])
Y = tensor_of("fp32", [[0.5 * j for j in range(8)] for _ in range(4)])
ZERO = tensor_of("fp32", [[0.0] * 8 for _ in range(4)])
GRADS = tensor_of("fp32", [1.0, -2.0, 3.5, 0.25])


AXES = {8: {"tp": 2, "dp": 4}, 4: {"tp": 2, "dp": 2}, 2: {"dp": 2}, 1: {"dp": 1}}
"""The listing's mesh, and those of machines of fewer devices."""


def usual(impl, check):
    """The number of devices of the listing, or the largest for which there is a mesh (AMB-RT-120)."""
    known = machine(impl, check)
    return 8 if known is None else next(count for count in AXES if count <= len(known))


def listing(impl, check, **stated):
    """Return the listing, with some of its parts stated otherwise."""
    count = stated.get("devices", usual(impl, check))
    known = devices(impl, check, count)
    whole = {
        "image": compiled(impl, check, SOURCE),
        "devices": count,
        "axes": AXES.get(count, {}),
        "kernel": "scaled",
        "tensors": [X, Y, ZERO],
        "integers": [4, 8],
        "scalars": {"scale": 2.0},
        "grid": [256, 1, 1],
        "block": [128, 1, 1],
        "grads": GRADS,
        "op": "max",
        "axis": "dp",
    }
    asked = whole | stated
    ids = known[: asked["devices"]]
    if ids != list(range(asked["devices"])):
        asked["device_ids"] = ids  # AMB-RT-120
    return impl.binding.listing(**asked)


def run(impl, check, **stated):
    """The listing, which succeeds."""
    return check.returns(listing(impl, check, **stated), "the listing runs")


@clause("RT-05-01")
def test_init_gives_a_context(impl, check):
    """Each call of init gives a context that counts as true."""
    for _ in range(2):
        check.equal(run(impl, check)["context"], True, "there is a context")


@clause("RT-05-02")
@pytest.mark.parametrize(
    ("count", "axes", "size"),
    [
        (8, {"tp": 2, "dp": 4}, 8),
        (8, {"dp": 8}, 8),
        (1, {"dp": 1}, 1),
        (4, {"tp": 2, "pp": 1, "dp": 2, "ep": 1}, 4),
        (6, {"ep": 2, "dp": 3}, 6),
    ],
)
def test_a_mesh_is_made_of_a_range_and_some_axes(impl, check, count, axes, size):
    """Axes that are not named have size 1 (AMB-RT-01)."""
    check.equal(run(impl, check, devices=count, axes=axes)["mesh_size"], size, "the size of the mesh")


@clause("RT-05-02")
@pytest.mark.parametrize(
    ("count", "axes"),
    [
        (1, {"tp": 2}),
        (1, {"dp": 2, "ep": 2}),
        (1, {"dp": -1}),
        (8, {"tp": 2, "dp": 2}),
        (8, {"dp": 9}),
        (8, {"dp": -8}),
    ],
)
def test_axes_that_do_not_fit_the_devices_are_refused(impl, check, count, axes):
    """Another product than the number of devices: TESS_ERR_INVALID_VALUE, as of the C function (AMB-RT-01)."""
    refused(check, listing(impl, check, devices=count, axes=axes), "TESS_ERR_INVALID_VALUE")


@clause("RT-05-03")
@judges("effect", "refusal")
def test_a_module_is_loaded_from_the_bytes_of_a_fatbin(impl, check):
    """Bytes of a fatbin are loaded; other bytes are TESS_ERR_INVALID_VALUE (AMB-RT-43)."""
    check.true(bool(run(impl, check)["kernels"]), "the module has kernels")
    for image in ("", "00" * 64, compiled(impl, check, SOURCE)[:200]):
        refused(check, listing(impl, check, image=image), "TESS_ERR_INVALID_VALUE")


@clause("RT-05-04")
@pytest.mark.parametrize("integers", [[4, 8], [-1, 2**31 - 1]])
@pytest.mark.parametrize("scale", [2.0, -0.375])
def test_arguments_are_packed_as_the_kernel_takes_them(impl, check, integers, scale):
    """Three pointers, two integers and a keyword scalar: 36 bytes, rounded up to 40 (section 10.1)."""
    packed = bytes.fromhex(run(impl, check, integers=integers, scalars={"scale": scale})["argument_bytes"])
    check.equal(len(packed), 40, "the size of the parameter buffer")
    check.equal(packed[24:36], struct.pack("<iif", *integers, scale), "the integers and the scalar")
    pointers = struct.unpack_from("<QQQ", packed)
    check.true(0 not in pointers and len(set(pointers)) == 3, "three pointers, none NULL, of three arrays", pointers)


@clause("RT-05-04")
@pytest.mark.parametrize("scale", [2.0, -0.5, 0.0])
def test_a_keyword_scalar_reaches_the_kernel(impl, check, scale):
    """The result is X * scale + Y, which is exact for these numbers."""
    expected = [[(8 * i + j) * scale + 0.5 * j for j in range(8)] for i in range(4)]
    outputs = run(impl, check, scalars={"scale": scale})["outputs"]
    check.bits(outputs[2], tensor_of("fp32", expected), "the output of the kernel")


@clause("RT-05-05")
@pytest.mark.parametrize(
    ("grid", "block"), [([256, 1, 1], [128, 1, 1]), ([1, 1, 1], [0, 0, 0]), ([2, 2, 2], [8, 4, 1])]
)
def test_a_launch_takes_grid_block_arguments_and_stream(impl, check, grid, block):
    """The arrays of the application hold the result once its stream is synchronized; the inputs are as they were."""
    outputs = run(impl, check, grid=grid, block=block)["outputs"]
    expected = [[(8 * i + j) * 2.0 + 0.5 * j for j in range(8)] for i in range(4)]
    for actual, wanted in zip(outputs, (X, Y, tensor_of("fp32", expected)), strict=True):
        check.bits(actual, wanted, "an array of the application")


@clause("RT-05-05")
@pytest.mark.parametrize(
    ("grid", "block"), [([0, 1, 1], [128, 1, 1]), ([1, -1, 1], [1, 1, 1]), ([1, 1, 1], [1 << 20, 1, 1])]
)
def test_a_launch_that_no_device_can_run_is_refused(impl, check, grid, block):
    """The grid and the block are those of the launch: TESS_ERR_INVALID_VALUE (AMB-RT-08, AMB-RT-61)."""
    refused(check, listing(impl, check, grid=grid, block=block), "TESS_ERR_INVALID_VALUE")


@clause("RT-05-06")
@pytest.mark.parametrize("axis", ["dp", "tp", "pp"])
@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_all_reduce_takes_names_for_operator_and_axis(impl, check, op, axis):
    """Every rank has the application's array: a sum is so many times as large, the extremes are the array itself."""
    factor = AXES[usual(impl, check)].get(axis, 1) if op == "sum" else 1
    expected = tensor_of("fp32", [factor * value for value in (1.0, -2.0, 3.5, 0.25)])
    check.bits(run(impl, check, op=op, axis=axis)["reduced"], expected, "the gradients")


@clause("RT-05-06")
@pytest.mark.parametrize("stated", [{"op": "product"}, {"op": "SUM "}, {"axis": "zz"}, {"axis": ""}])
def test_another_operator_or_axis_is_refused(impl, check, stated):
    """TESS_ERR_INVALID_VALUE for a name that is not known (AMB-RT-03, AMB-RT-59)."""
    refused(check, listing(impl, check, **stated), "TESS_ERR_INVALID_VALUE")


@clause("RT-05-09")
def test_a_module_has_its_kernels_by_name(impl, check):
    """Both, and the one that is asked for is the one that runs; another name is TESS_ERR_INVALID_VALUE."""
    actual = run(impl, check, kernel="filled", tensors=[X], integers=[4], scalars={})
    check.equal(sorted(actual["kernels"]), ["filled", "scaled"], "the kernels of the module")
    check.bits(actual["outputs"][0], tensor_of("fp32", [[3.0] * 8] * 4), "what the kernel has written")
    refused(check, listing(impl, check, kernel="missing"), "TESS_ERR_INVALID_VALUE")


@clause("RT-05-10")
def test_there_is_a_default_stream(impl, check):
    """It counts as true, and what is launched on it is done when it is synchronized."""
    actual = run(impl, check)
    check.equal(actual["default_stream"], True, "there is a default stream")
    expected = [[(8 * i + j) * 2.0 + 0.5 * j for j in range(8)] for i in range(4)]
    check.bits(actual["outputs"][2], tensor_of("fp32", expected), "the output of the kernel")

"""Memory, barriers and control flow of kernels at Target IR (language spec, 8.2, 8.3 and 16)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.kernel_texts import KernelText
from tessera_conformance.chapters.ir.kit.level_programs import BOTH_VENDORS, buffers_after, fails, verified
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.chapters.ir.kit.target_kernels import LDS, POINTER, TargetKernel
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Returned

pytestmark = feature("target-ir-text")

NVIDIA = {
    "barrier": "nvvm.barrier0",
    "read": "llvm.load",
    "write": "llvm.store",
}
AMD = {"barrier": "rocdl.barrier", "read": "rocdl.ds_read", "write": "rocdl.ds_write"}
VENDORS = {
    "sm_90": pytest.param("sm_90", marks=clause("LANG-08.2-08")),
    "gfx942": pytest.param("gfx942", marks=clause("LANG-08.2-11")),
}


class Device(TargetKernel):
    """A kernel of x and y with the operations of its vendor by short names."""

    def __init__(self, target="sm_90", lanes=128, **attributes):
        super().__init__(target, lanes, **attributes)
        self.lanes, self.names = lanes, AMD if target.startswith("gfx") else NVIDIA

    def get(self, pointer, index, gives="int32"):
        """Read at an index of elements, from shared memory by the vendor's operation."""
        name = self.names["read"] if pointer.type == LDS else "llvm.load"
        return self.op(name, self.at(pointer, index, gives.rpartition("x")[2].rstrip(">")), gives=gives)

    def put(self, value, pointer, index):
        """Write at an index of elements, as `get` reads."""
        name = self.names["write"] if pointer.type == LDS else "llvm.store"
        self.op(name, value, self.at(pointer, index, value.type.rpartition("x")[2].rstrip(">")))

    def barrier(self):
        """Wait for every thread of the block."""
        self.op(self.names["barrier"])


def counted(count, factor=1):
    """0, 1, 2 and so on."""
    return tensor_of("int32", [factor * index for index in range(count)])


def after(impl, check, kernel, x, y):
    """Return y after the kernel."""
    return buffers_after(impl, check, kernel, x=x, y=y)[1]


# Shared memory and barriers


@pytest.mark.parametrize("target", VENDORS.values(), ids=VENDORS)
@pytest.mark.parametrize("barrier", [True, False], ids=["barrier", "none"])
def test_threads_exchange_through_shared_memory_behind_a_barrier(impl, check, target, barrier):
    """Each writes its element and reads that of another warp: after a barrier; without one it is a race."""
    kernel = Device(target)
    tile = kernel.tile(128)
    kernel.put(kernel.get(kernel["x"], kernel.thread), tile, kernel.thread)
    if barrier:
        kernel.barrier()
    other = kernel.integers("add", kernel.integers("mul", kernel.thread, -1), 127)
    kernel.put(kernel.get(tile, other), kernel["y"], kernel.thread)
    if barrier:
        expected = tensor_of("int32", [3 * index for index in reversed(range(128))])
        check.bits(after(impl, check, kernel, counted(128, 3), counted(128)), expected)
    else:
        fails(impl, check, kernel, x=counted(128, 3), y=counted(128))


@pytest.mark.parametrize("target", VENDORS.values(), ids=VENDORS)
@pytest.mark.parametrize("bound", [128, 96, 32], ids=["all", "most", "one-warp"])
def test_every_thread_of_a_block_reaches_a_barrier(impl, check, target, bound):
    """One that part of the block does not reach is an error, also where whole warps do."""
    kernel = Device(target)
    condition = kernel.less(kernel.thread, bound)
    masked(kernel, condition, lambda: (kernel.barrier(), kernel.mark()))
    kernel.put(kernel.thread, kernel["y"], kernel.thread)
    if bound == 128:
        check.bits(after(impl, check, kernel, counted(128), counted(128, 0)), counted(128))
    else:
        fails(impl, check, kernel, x=counted(128), y=counted(128, 0))


def masked(kernel, condition, body):
    """Operations in the lanes in which a condition holds."""
    kernel.raw(f'"scf.if"({condition.name}) ({{')
    body()
    for line in (
        '"tessera.graph.yield"() : () -> ()',
        "}, {",
        '"tessera.graph.yield"() : () -> ()',
        "}) : (bool) -> ()",
    ):
        kernel.raw(line)


@clause("LANG-08-01")
@pytest.mark.parametrize(
    "mask", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 2, 2], [1, 3, 3, 0], [0, 2], [3, 0, 1, 3, 2, 2, 0, 1]]
)
def test_a_vector_is_shuffled_by_positions(impl, check, mask):
    """Elements may come in any order, be left out or come twice, as in LLVM's shufflevector."""
    kernel = Device(lanes=1)
    zero = kernel.number(0)
    vector = kernel.get(kernel["x"], zero, "vector<4xint32>")
    kernel.put(
        kernel.op("llvm.shufflevector", vector, gives=f"vector<{len(mask)}xint32>", mask=mask), kernel["y"], zero
    )
    actual = after(impl, check, kernel, counted(4, 7), counted(len(mask), 0))
    check.bits(actual, tensor_of("int32", [7 * place for place in mask]))


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_an_address_may_lie_before_the_one_it_is_counted_from(impl, check, target):
    """An index of a pointer into a buffer may be negative, as in LLVM's getelementptr."""
    kernel = Device(target, lanes=1)
    for place, (forward, back) in enumerate([(5, -2), (7, -7), (3, 0), (0, 2)]):
        address = kernel.at(kernel.at(kernel["x"], kernel.number(forward)), kernel.number(back))
        kernel.put(kernel.op("llvm.load", address, gives="int32"), kernel["y"], kernel.number(place))
    actual = after(impl, check, kernel, counted(8, 3), counted(4, 0))
    check.bits(actual, tensor_of("int32", [9, 0, 9, 6]))


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["int8", "bf16", "fp32", "fp64", "int64"])
def test_an_index_counts_elements_of_any_width(impl, check, dtype, index, target):
    """A row is turned round by indices of either width."""
    kernel = Device(target, lanes=32)
    number = kernel.integers("add", kernel.integers("mul", kernel.thread, -1), 31)
    place = kernel.op("llvm.sext", number, gives="int64") if index == "int64" else number
    kernel.put(kernel.get(kernel["x"], place, dtype), kernel["y"], kernel.thread)
    x, y = tensor_of(dtype, [3 * number for number in range(32)]), tensor_of(dtype, [0] * 32)
    check.bits(after(impl, check, kernel, x, y), tensor_of(dtype, [3 * number for number in reversed(range(32))]))


@clause("LANG-08-01", "LANG-01-03")
@pytest.mark.parametrize("position", [0, 1, 3])
def test_a_vector_with_another_element_leaves_the_first_as_it_was(impl, check, position):
    """llvm.insertelement gives a vector of its own, also of one that it has given before."""
    kernel = Device(lanes=1)
    zero, four, eight = (kernel.number(number) for number in (0, 4, 8))
    loaded = kernel.get(kernel["x"], zero, "vector<4xint32>")
    first = kernel.op("llvm.insertelement", loaded, eight, gives=loaded.type, position=2)
    second = kernel.op("llvm.insertelement", first, four, gives=loaded.type, position=position)
    for place, vector in zip((zero, four, eight), (loaded, first, second), strict=True):
        kernel.put(vector, kernel["y"], place)
    expected = [[5, 6, 7, 8], [5, 6, 8, 8], [5, 6, 8, 8]]
    expected[2][position] = 4
    x = tensor_of("int32", [5, 6, 7, 8])
    check.bits(after(impl, check, kernel, x, counted(12, 0)), tensor_of("int32", [n for row in expected for n in row]))


@pytest.mark.parametrize("target", VENDORS.values(), ids=VENDORS)
def test_shared_memory_belongs_to_a_block(impl, check, target):
    """Every block finds it uninitialised, and its own: the number that thread 0 of the block wrote."""
    kernel = Device(target, lanes=64, grid=(3, 1, 1))
    tile = kernel.tile(1)
    axis = "rocdl.workgroup.id.x" if target == "gfx942" else "nvvm.read.ptx.sreg.ctaid.x"
    block = kernel.op(axis, gives="int32")
    masked(kernel, kernel.less(kernel.thread, 1), lambda: kernel.put(block, tile, kernel.number(0)))
    kernel.barrier()
    place = kernel.integers("add", kernel.integers("mul", block, 64), kernel.thread)
    kernel.put(kernel.get(tile, kernel.number(0)), kernel["y"], place)
    expected = tensor_of("int32", [index // 64 for index in range(192)])
    check.bits(after(impl, check, kernel, counted(1), counted(192, 0)), expected)


@clause("LANG-08.2-11")
def test_the_lds_is_read_and_written_in_vectors(impl, check):
    """Four elements of each lane at once, from its own place and another's."""
    kernel = Device("gfx90a", lanes=64)
    tile = kernel.tile(256)
    begin = kernel.integers("mul", kernel.thread, 4)
    kernel.put(kernel.get(kernel["x"], begin, "vector<4xint32>"), tile, begin)
    kernel.barrier()
    turned = kernel.integers("add", kernel.integers("mul", kernel.thread, -4), 252)
    kernel.put(kernel.get(tile, turned, "vector<4xint32>"), kernel["y"], begin)
    expected = [4 * (63 - index // 4) + index % 4 for index in range(256)]
    check.bits(after(impl, check, kernel, counted(256), counted(256, 0)), tensor_of("int32", expected))


@clause("LANG-08.2-11")
@pytest.mark.parametrize("operation", ["read", "write"])
def test_an_operation_of_the_lds_takes_no_global_pointer(impl, check, operation):
    """Its address is one of address space 3."""
    for target, legal in (("shared", True), ("global", False)):
        kernel = Device("gfx90a", lanes=64)
        tile = kernel.tile(64)
        pointer = kernel.at(tile if target == "shared" else kernel["x"], kernel.thread)
        if operation == "read":
            kernel.op("rocdl.ds_read", pointer, gives="int32")
        else:
            kernel.op("rocdl.ds_write", kernel.thread, pointer)
        observation = verified(impl, kernel.module, "target", "gfx90a")
        accepts_if(check, legal, observation, category=("types", "tile"), at_line=kernel.line)


# Alignment


@clause("LANG-16-05")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("offset", [0, 8, 4, 1])
def test_what_a_lane_reads_of_a_fragment_is_aligned_to_16_bytes(impl, check, offset, space, target):
    """Eight bf16 are 16 bytes, which begin at a multiple of 16 bytes; elsewhere it is an error."""
    kernel = Device(target, lanes=1)
    tile = kernel.tile(32, "bf16")
    for index in range(0, 32, 8):
        kernel.put(kernel.get(kernel["x"], kernel.number(index), "vector<8xbf16>"), tile, kernel.number(index))
    kernel.barrier()
    actual = kernel.get(tile if space == "shared" else kernel["x"], kernel.number(offset), "vector<8xbf16>")
    kernel.mark()
    kernel.put(actual, kernel["y"], kernel.number(0))
    x, y = tensor_of("bf16", [float(index) for index in range(32)]), tensor_of("bf16", [0.0] * 8)
    if offset % 8 == 0:
        expected = tensor_of("bf16", [float(offset + index) for index in range(8)])
        check.bits(after(impl, check, kernel, x, y), expected)
    else:
        fails(impl, check, kernel, x=x, y=y)


@clause("LANG-16-05")
@pytest.mark.parametrize("alignment", [16, 32, 0, 3, 24])
def test_an_alignment_of_shared_memory_is_a_power_of_two(impl, check, alignment):
    """Zero and other numbers are refused."""
    kernel = KernelText({"x": POINTER}, level="target", smem_bytes=64)
    stated = {"elements": 4, "elem_type": "int32", "alignment": alignment}
    kernel.op("llvm.mlir.addressof", gives=LDS, global_name="tile", **stated)
    observation = verified(impl, kernel.module, "target")
    accepts_if(check, alignment in (16, 32), observation, category=("tile", "types"), at_line=kernel.line)


# Control flow


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (5, 0, -1), (1, 8, 3), (3, 3, 1), (4, 2, 1), (0, -7, -3)]
)
def test_a_loop_counts_and_carries(impl, check, start, stop, step, target):
    """From start to stop, which is excluded, in either direction; what each turn yields the next one gets."""
    kernel = Device(target, lanes=4)
    bounds = [kernel.number(bound) for bound in (start, stop, step)]
    first = ", ".join(bound.name for bound in (*bounds, kernel.thread))
    kernel.raw(f'%sum = "scf.for"({first}) ({{')
    kernel.raw("^bb0(%i: int32, %s: int32):")
    kernel.raw('%t = "llvm.mul"(%s, %s) : (int32, int32) -> int32')
    kernel.raw('%u = "llvm.add"(%t, %i) : (int32, int32) -> int32')
    kernel.raw('"tessera.graph.yield"(%u) : (int32) -> ()')
    kernel.raw("}) : (int32, int32, int32, int32) -> int32")
    kernel.raw(f'%at = "llvm.getelementptr"(%y, {kernel.thread.name}) {{elem_type = "int32"}} '
               f": ({POINTER}, int32) -> {POINTER}")  # fmt: skip
    kernel.raw(f'"llvm.store"(%sum, %at) : (int32, {POINTER}) -> ()')
    expected = []
    for lane in range(4):
        carried = lane
        for index in range(start, stop, step):
            carried = (carried * carried + index + 2**31) % 2**32 - 2**31
        expected.append(carried)
    check.bits(after(impl, check, kernel, counted(1), counted(4, 0)), tensor_of("int32", expected))


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_branch_runs_in_the_lanes_that_take_it(impl, check, target):
    """Lanes below 3 write what one side yields, the others what the other does; neither side divides by 0."""
    kernel = Device(target, lanes=8)
    below = kernel.less(kernel.thread, 3)
    hundred, three = kernel.number(100), kernel.number(3)
    kernel.raw(f'%r = "scf.if"({below.name}) ({{')
    kernel.raw(f'%a = "llvm.sub"({kernel.thread.name}, {three.name}) : (int32, int32) -> int32')
    kernel.raw(f'%b = "llvm.sdiv"({hundred.name}, %a) : (int32, int32) -> int32')
    kernel.raw('"tessera.graph.yield"(%b) : (int32) -> ()')
    kernel.raw("}, {")
    kernel.raw(f'"tessera.graph.yield"({kernel.thread.name}) : (int32) -> ()')
    kernel.raw("}) : (bool) -> int32")
    at = kernel.at(kernel["y"], kernel.thread)
    kernel.raw(f'"llvm.store"(%r, {at.name}) : (int32, {POINTER}) -> ()')
    expected = [-33, -50, -100, 3, 4, 5, 6, 7]
    check.bits(after(impl, check, kernel, counted(1), counted(8, 0)), tensor_of("int32", expected))


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
def test_a_branch_yields_a_pointer_to_each_lane(impl, check, target):
    """Lanes below 3 write at their own place, the others from the end backwards, into one buffer."""
    kernel = Device(target, lanes=8)
    below, ten = kernel.less(kernel.thread, 3), kernel.number(10)
    own = kernel.at(kernel["y"], kernel.thread)
    kernel.raw(f'%back = "llvm.sub"({ten.name}, {kernel.thread.name}) : (int32, int32) -> int32')
    kernel.raw(f'%far = "llvm.getelementptr"(%y, %back) {{elem_type = "int32"}} : ({POINTER}, int32) -> {POINTER}')
    kernel.raw(f'%p = "scf.if"({below.name}) ({{')
    kernel.raw(f'"tessera.graph.yield"({own.name}) : ({POINTER}) -> ()')
    kernel.raw("}, {")
    kernel.raw(f'"tessera.graph.yield"(%far) : ({POINTER}) -> ()')
    kernel.raw(f"}}) : (bool) -> {POINTER}")
    kernel.raw(f'"llvm.store"({kernel.thread.name}, %p) : (int32, {POINTER}) -> ()')
    actual = after(impl, check, kernel, counted(1), counted(8, 0))
    check.bits(actual, tensor_of("int32", [0, 1, 2, 7, 6, 5, 4, 3]))


@clause("LANG-08-01")
@pytest.mark.parametrize("target", BOTH_VENDORS)
@pytest.mark.parametrize("count", [8, 7], ids=["inside", "outside"])
def test_an_access_stays_inside_its_buffer(impl, check, count, target):
    """The last of 8 lanes reads an element that a buffer of 7 has not."""
    kernel = Device(target, lanes=8)
    pointer = kernel.at(kernel["x"], kernel.thread)
    value = kernel.op("llvm.load", pointer, gives="int32")
    kernel.mark()
    kernel.put(value, kernel["y"], kernel.thread)
    if count == 8:
        check.bits(after(impl, check, kernel, counted(8, 5), counted(8, 0)), counted(8, 5))
    else:
        fails(impl, check, kernel, x=counted(7, 5), y=counted(8, 0))


@clause("LANG-08-01")
@pytest.mark.parametrize(
    "name", ["tessera.tile.barrier", "nvvm.barrier", "arith.addi", "llvm.fence", "tessera.graph.softmax"]
)
def test_an_operation_of_another_level_is_refused(impl, check, name):
    """A kernel at Target IR has operations of llvm, scf, nvvm and rocdl, which are known (AMB-LANG-245)."""
    kernel = Device()
    kernel.barrier()
    check.accepts(verified(impl, kernel.module, "target"))
    kernel.op(name)
    answer = verified(impl, kernel.module, "target")
    mixed = name.startswith("tessera.") and isinstance(answer, Returned)
    check.reading("AMB-LANG-245", "any operation at any level", mixed)
    check.rejects(answer, category=("tile", "types", "syntax"))


@clause("LANG-08.1-02", "LANG-04-01")
def test_a_kernel_that_has_run_takes_buffers_of_other_sizes(impl, check):
    """Four runs on two elements, then on five and on one: a pointer says nothing of the size of its buffer."""
    kernel = KernelText({"y": "!llvm.ptr<1>", "x": "!llvm.ptr<1>"}, level="target", block=(1, 1, 1))
    kernel.op("llvm.store", kernel.op("llvm.load", kernel["x"], gives="int32"), kernel["y"])
    for run, count in enumerate((2, 2, 2, 2, 5, 1)):
        y, x = tensor_of("int32", [-1] * count), tensor_of("int32", [run] * count)
        actual = buffers_after(impl, check, kernel, y=y, x=x)
        check.bits(actual[0], tensor_of("int32", [run] + [-1] * (count - 1)), f"run {run}")

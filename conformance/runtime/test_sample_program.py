"""The sample program of the runtime specification, section 18, from initialization to teardown.

Eight devices, tp = 2 and dp = 4, ep left at zero, or the same on one device; a fused attention with B, H, L and D as
parameters and a scale, launched with grid 256 and block 128 under the deterministic flag. The attention scores are
q k' times scale.
"""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.ir.kit.programs import value_of
from tessera_conformance.chapters.runtime.kit.collectives import GUARD, held
from tessera_conformance.chapters.runtime.kit.encoding import packed
from tessera_conformance.chapters.runtime.kit.mesh_session import (
    DETERMINISTIC,
    MeshSession,
    axes_of,
    compiled,
    devices,
    presume_devices,
)
from tessera_conformance.check import Check
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.compositions import flash_attention
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

SAMPLE = """module model {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxfp32>, K: tensor<BxHxLxDxfp32>, V: tensor<BxHxLxDxfp32>,
                               O: tensor<BxHxLxDxfp32>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = op.matmul(op.softmax(op.matmul(Q, op.transpose(K) @{perm=[0, 1, 3, 2]}) * scale) @{axis=3}, V);
  }
  kernel same(x: fp32, B: int32, H: int32, L: int32, D: int32, T: tensor<BxHxLxDxfp32>) { T = T * 0.0 + x; }
}
"""

IN_THE_LANGUAGE = """module model {
  func attention(Q: tensor<SHAPExfp32>, K: tensor<SHAPExfp32>, V: tensor<SHAPExfp32>) -> tensor<SHAPExfp32> {
    return op.matmul(op.softmax(op.matmul(Q, op.transpose(K) @{perm=[0, 1, 3, 2]}) * 1.0) @{axis=3}, V);
  }
}
"""

MESHES = {8: {"tp": 2, "pp": 1, "dp": 4, "ep": 0}, 1: {"tp": 1, "pp": 1, "dp": 1, "ep": 0}}
"""The axes of the sample's mesh, and those of the same program on one device (AMB-RT-120)."""

SHAPES = [(1, 1, 1, 1), (1, 2, 4, 8), (2, 1, 5, 3)]
"""B, H, L and D."""


class Sample:
    """The sample program in its steps; every call is checked for TESS_OK."""

    def __init__(self, impl: Implementation, check: Check, shape: tuple[int, ...], ranks: int = 8) -> None:
        """From tessInit to the kernel."""
        self.shape = shape
        context = check.returns(impl.runtime.tessInit(), "tessInit succeeds")["context"]
        axes = axes_of(**MESHES[ranks])
        ids = devices(impl, check, ranks)
        created = impl.runtime.tessMeshCreate(context=context, deviceIds=ids, nDevices=ranks, axes=axes)
        presume_devices(impl, check, ranks, created)
        mesh = check.returns(created, "tessMeshCreate succeeds")["mesh"]
        made = impl.runtime.tessStreamCreate(mesh=mesh, priority=0)
        stream = check.returns(made, "tessStreamCreate succeeds")["stream"]
        self.session = MeshSession(impl, check, context, mesh, stream, ranks)
        size = 4 * shape[0] * shape[1] * shape[2] * shape[3]
        self.tensors = {name: self.session.upload(bytes(size + len(GUARD))) for name in "QKVO"}
        image = compiled(impl, check, SAMPLE)
        loaded = self.session.ask("tessModuleLoad", context=context, image=image, size=len(image) // 2)
        self.module = loaded["module"]
        self.kernel = self.session.kernel_of(self.module, "flash_attention_fused")

    def fill(self, name: str, value: float) -> None:
        """Give a tensor one value on every rank, by a kernel."""
        extents = [("int32", extent) for extent in self.shape]
        arguments = packed(("fp32", value), *extents, ("ptr", self.tensors[name]))
        self.session.launch(self.session.kernel_of(self.module, "same"), arguments)

    def run(self) -> None:
        """tessLaunch as the sample has it, and the synchronization."""
        pointers = [("ptr", self.tensors[name]) for name in "QKVO"]
        arguments = packed(*pointers, *[("int32", extent) for extent in self.shape], ("fp32", 1.0))
        self.session.check.equal(len(arguments), 0x38, "the size of the arguments")
        cfg = {"grid": [256, 1, 1], "block": [128, 1, 1], "shmemBytes": 0, "flags": DETERMINISTIC}
        self.session.launch(self.kernel, arguments, argSize=len(arguments), **cfg)
        self.session.synchronize()

    def end(self) -> None:
        """The teardown, in the order of the sample."""
        session = self.session
        session.ask("tessStreamDestroy", stream=session.stream)
        session.ask("tessModuleUnload", module=self.module)
        for pointer in self.tensors.values():
            session.ask("tessFree", mesh=session.mesh, devPtr=pointer)
        session.destroy_mesh()
        session.ask("tessShutdown", context=session.context)


@clause("RT-18-01", "RT-18-04")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("ranks", MESHES)
def test_the_sample_program_runs(impl, check, ranks, shape):
    """Every call gives TESS_OK, also in a second run after the teardown of the first."""
    for _ in range(2):
        sample = Sample(impl, check, shape, ranks)
        for name, value in zip("QKVO", (0.5, 0.25, 3.0, -1.0), strict=True):
            sample.fill(name, value)
        sample.run()
        sample.end()


@clause("RT-18-01", "RT-18-04")
@pytest.mark.parametrize("shape", [(1, 2, 4, 8), (2, 1, 8, 2)], ids=["1x2x4x8", "2x1x8x2"])
@pytest.mark.parametrize("ranks", MESHES)
def test_the_sample_program_computes(impl, check, ranks, shape):
    """Attention to rows that are all alike is such a row: what rank 0 has then are threes."""
    sample = Sample(impl, check, shape, ranks)
    for name, value in zip("QKVO", (0.5, 0.25, 3.0, -1.0), strict=True):
        sample.fill(name, value)
    sample.run()
    count = shape[0] * shape[1] * shape[2] * shape[3]
    actual = Tensor("fp32", shape, sample.session.download(sample.tensors["O"], 4 * count))
    words = {name: 0x3F000000 if name == "Q" else 0x3E800000 if name == "K" else 0x40400000 for name in "QKV"}
    inputs = [Tensor.from_words("fp32", shape, [word] * count) for word in words.values()]
    judge(impl, check, actual, inputs, "what rank 0 has")
    sample.end()


@clause("RT-18-01")
def test_the_sample_program_takes_scores_of_any_size(impl, check):
    """Scores of 2 to the 15, whose exponential no format holds: a softmax subtracts the largest score first."""
    shape = (1, 2, 4, 8)
    sample = Sample(impl, check, shape)
    for name, value in zip("QKVO", (64.0, 64.0, 3.0, -1.0), strict=True):
        sample.fill(name, value)
    sample.run()
    actual = Tensor("fp32", shape, sample.session.download(sample.tensors["O"], 4 * 64))
    inputs = [Tensor.from_words("fp32", shape, [word] * 64) for word in (0x42800000, 0x42800000, 0x40400000)]
    judge(impl, check, actual, inputs, "what rank 0 has")
    sample.end()


@feature("rank-memory", "fused-attention")
@clause("RT-18-01")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_the_sample_program_computes_on_every_rank(impl, check, shape):
    """Each rank has data of its own, and the attention of that; the memory behind each tensor stays."""
    sample = Sample(impl, check, shape)
    session = sample.session
    given = {
        name: [counted("fp32", shape, seed=640 + 8 * place + rank) for rank in range(8)]
        for place, name in enumerate("QKVO")
    }
    for name, tensors in given.items():
        for rank, tensor in enumerate(tensors):
            session.poke(rank, sample.tensors[name], tensor.data + GUARD)
    sample.run()
    for name in "QKV":
        for rank, output in enumerate(held(session, sample.tensors[name], given[name])):
            check.bits(output, given[name][rank], f"{name} of rank {rank}, which is only read")
    for rank, output in enumerate(held(session, sample.tensors["O"], given["O"])):
        judge(impl, check, output, [given[name][rank] for name in "QKV"], f"what rank {rank} has")
    sample.end()


@feature("rank-memory")
@clause("RT-18-01")
def test_the_sample_program_computes_what_its_function_computes(impl, check):
    """The same expression as a function of the language, executed at the level of the run, at strict bit for bit."""
    shape = (1, 2, 4, 8)
    sample = Sample(impl, check, shape)
    given = {name: counted("fp32", shape, seed=700 + place) for place, name in enumerate("QKV")}
    for name, tensor in given.items():
        for rank in range(8):
            sample.session.poke(rank, sample.tensors[name], tensor.data)
    sample.run()
    actual = Tensor("fp32", shape, sample.session.peek(5, sample.tensors["O"], len(given["Q"].data)))
    judge(impl, check, actual, list(given.values()), "what rank 5 has")
    if impl.level == "strict":
        source = IN_THE_LANGUAGE.replace("SHAPE", "x".join(map(str, shape)))
        check.bits(actual, value_of(impl, check, source, "attention", **given), "the result of the function")
    sample.end()


def judge(impl: Implementation, check: Check, actual: Tensor, inputs: list[Tensor], what: str) -> None:
    """At strict the bits of the reference arithmetic; else within the bound of attention."""
    if impl.level == "strict":
        check.bits(actual, flash_attention(*inputs, scale=1.0), what)
    else:
        check.enclosed(actual, bounds.enclose("oracle.flash_attention", inputs, {"scale": 1.0}), what)

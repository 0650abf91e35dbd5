"""The inspection of a module image (runtime specification, 2, 8.1, 16).

The container is the implementation's own: it is judged by what the adapter reports of it (AMB-RT-21).
"""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import compiled, devices
from tessera_conformance.chapters.runtime.kit.readings import rejected
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.parameter_buffers import Place, by_the_rule

pytestmark = feature("image-inspection")

ONE = "module m { kernel fill(v: int32, x: tensor<64xint32>) { x[0:64] = v; } }"
THREE = """module m {
  kernel first(x: tensor<8xfp32>) { x = x + x; }
  kernel second(n: int32, x: tensor<8xint32>, s: fp64, y: tensor<8xint32>) { y = x + n; }
  kernel third(a: fp32, b: int64) { }
}
"""
ARGUMENTS = {
    "first": [("x", "ptr")],
    "second": [("n", "int32"), ("x", "ptr"), ("s", "fp64"), ("y", "ptr")],
    "third": [("a", "fp32"), ("b", "int64")],
}
TWO_MODULES = """module a { kernel left(x: tensor<8xfp32>) { x = x + x; } }
module b { kernel right(x: tensor<8xfp32>) { x = x * x; } }
"""
OPEN = "module m { kernel scale(N: int32, v: int32, x: tensor<Nxint32>) { x = x * v; } }"
"""A kernel whose extent a launch gives."""
PRODUCT = """module m {
  kernel product(N: int32, M: int32, x: tensor<NxMxbf16>, y: tensor<MxNxbf16>, z: tensor<NxNxbf16>) { z = x @ y; }
  kernel sum(N: int32, x: tensor<8xNxfp32>, y: tensor<8xfp32>) { y = op.sum(x) @{axis=1}; }
  kernel fill(v: int32, x: tensor<64xint32>) { x[0:64] = v; }
}
"""
"""Kernels with extents that are open and one with such as are known."""
PROGRAMS = {"closed": (ONE, 1), "open": (OPEN, 1), "open-and-closed": (PRODUCT, 3)}
"""With their numbers of kernels."""
FUNCTION_BESIDE = """module m {
  func twice(x: tensor<8xfp32>) -> tensor<8xfp32> { return x + x; }
  kernel k(x: tensor<8xfp32>) { x = twice(x); }
}
"""
POLICIES = {
    "strict": (1, 1, 1, 0),
    "fast": (0, 0, 0, 1),
    "stable": (1, 0, 0, 0),
    "deterministic": (0, 1, 0, 0),
    "stateless": (0, 0, 1, 0),
}
SWITCHES = ("stableReductions", "deterministic", "rngStateless", "allowFastMath")


def inspected(impl, check, image):
    """Return the inspection of an image."""
    return check.returns(impl.abi.inspect(image=image), "the image can be inspected")


def said(impl, check, source=ONE, **options):
    """Return the inspection of a program's image."""
    return inspected(impl, check, compiled(impl, check, source, **options))


def kernel_of(impl, check, source, name):
    """The one entry of that name in the kernel table of a program."""
    actual = [kernel for kernel in said(impl, check, source)["kernels"] if kernel["name"] == name]
    check.equal(len(actual), 1, f"the number of kernels called {name}")
    return actual[0]


# One file that says everything


@clause("RT-02-01", "RT-08.1-07")
@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param(ONE, ["fill"], id="one"),
        pytest.param(THREE, ["first", "second", "third"], id="three"),
        pytest.param(TWO_MODULES, ["left", "right"], id="two-modules"),
        pytest.param(FUNCTION_BESIDE, ["k"], id="func-beside-it"),
    ],
)
def test_a_module_holds_one_kernel_or_several(impl, check, source, names):
    """Each kernel of the program is in the kernel table once; functions that are no kernels are not."""
    actual = [kernel["name"] for kernel in said(impl, check, source)["kernels"]]
    check.equal(sorted(actual), names, "the names in the kernel table")


@clause("RT-02-01", "RT-08.1-12")
@pytest.mark.parametrize("source", [ONE, THREE], ids=["one", "three"])
def test_an_image_has_one_metadata_section(impl, check, source):
    """However many kernels there are; it is for all targets and not empty."""
    actual = [section for section in said(impl, check, source)["sections"] if section["kind"] == "metadata"]
    check.equal([section["target"] for section in actual], [None], "the targets of the metadata sections")
    check.true(actual[0]["bytes"] > 0, "the metadata have bytes", actual[0]["bytes"])


@clause("RT-08.1-01")
def test_metadata_depends_on_the_image_alone(impl, check):
    """The metadata do not depend on other programs that were compiled or inspected since."""
    images = [compiled(impl, check, source) for source in (ONE, THREE)]
    first = [inspected(impl, check, image) for image in images]
    check.true(first[0]["kernels"] != first[1]["kernels"], "two programs have two kernel tables")
    again = [inspected(impl, check, image) for image in reversed(images)]
    check.equal(again, first[::-1], "what the images say in another order")


@clause("RT-08.1-01")
@pytest.mark.parametrize("kept", [0, 1, 8, 64, -1], ids=["nothing", "one", "eight", "64", "all-but-one"])
def test_a_truncated_image_is_refused(impl, check, kept):
    """One that is cut off is an invalid value, as it is to tessModuleLoad (AMB-RT-43)."""
    image = bytes.fromhex(compiled(impl, check, ONE))
    check.status(impl.abi.inspect(image=image[:kept].hex()), "TESS_ERR_INVALID_VALUE")


@clause("RT-08.1-01")
@pytest.mark.parametrize("place", range(8))
def test_an_altered_image_is_refused(impl, check, place):
    """One bit, in any eighth of the image (AMB-RT-43)."""
    image = bytearray.fromhex(compiled(impl, check, ONE))
    image[len(image) * (2 * place + 1) // 16] ^= 1 << place
    check.status(impl.abi.inspect(image=image.hex()), "TESS_ERR_INVALID_VALUE")


# The header


@clause("RT-08.1-02", "RT-16-01", "RT-02-04")
def test_an_image_carries_the_abi_version_of_the_runtime(impl, check):
    """A pair, major and minor: the first two numbers of tessGetVersion (AMB-RT-32)."""
    version = check.returns(impl.runtime.tessGetVersion())
    check.equal(said(impl, check)["abi_version"], [version["major"], version["minor"]], "the ABI version")


@clause("RT-08.1-02", "RT-16-01", "RT-02-04")
@pytest.mark.parametrize("version", [[1, 0], [1, 7], [2, 0], [3, 9], [0, 1]], ids=lambda pair: f"{pair[0]}.{pair[1]}")
def test_an_image_carries_the_abi_version_it_is_made_for(impl, check, version):
    """Major and minor are kept apart, also where the runtime would not load the module (AMB-RT-106)."""
    image = compiled(impl, check, ONE, abi_version=version)
    answer = impl.abi.inspect(image=image)
    if rejected(answer, "TESS_ERR_ABI_VERSION_MISMATCH"):
        context = check.returns(impl.runtime.tessInit())["context"]
        loaded = impl.runtime.tessModuleLoad(context=context, image=image)
        check.reading("AMB-RT-106", "inspection refuses what loading refuses", loaded == answer)
    check.equal(check.returns(answer)["abi_version"], version, "the ABI version")


@clause("RT-08.1-03", "RT-02-03")
def test_an_image_carries_its_targets(impl, check):
    """Without a wish, those of the machine's devices, each once."""
    machine = {device["target"] for device in check.returns(impl.runtime.tessxDevices())["devices"]}
    check.equal(sorted(said(impl, check)["targets"]), sorted(machine), "the targets")


@clause("RT-08.1-03", "RT-02-03")
@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(["sm_90"], marks=feature("target-nvptx"), id="sm_90"),
        pytest.param(["gfx942"], marks=feature("target-amdgcn"), id="gfx942"),
        pytest.param(["gfx942", "sm_90"], marks=feature("target-nvptx", "target-amdgcn"), id="both"),
    ],
)
def test_an_image_carries_the_targets_it_is_made_for(impl, check, targets):
    """The image has all targets that were asked for, whatever devices the machine has (AMB-RT-106)."""
    check.equal(sorted(said(impl, check, targets=targets)["targets"]), targets, "the targets")


@clause("RT-08.1-04", "RT-02-02")
def test_an_image_carries_a_hash_of_its_source(impl, check):
    """At least 16 bytes, the same whenever the same program is compiled, another one for another program."""
    actual = [said(impl, check, source)["ir_hash"] for source in (ONE, THREE, ONE, FUNCTION_BESIDE)]
    check.true(min(map(len, actual)) >= 32, "every hash has 16 bytes or more", actual)
    check.equal(actual[2], actual[0], "the hash of the same program")
    check.equal(len(set(actual)), 3, "the number of hashes of three programs")


@clause("RT-08.1-04", "RT-02-02")
def test_the_hash_is_that_of_the_source_alone(impl, check):
    """Version and policy are beside it: the same kernels have the same fingerprint (AMB-RT-104, AMB-RT-106)."""
    plain = said(impl, check)["ir_hash"]
    policy = dict(zip(SWITCHES, POLICIES["fast"], strict=True))
    others = {"version": {"abi_version": [1, 3]}, "policy": {"policy": policy}}
    for name, options in others.items():
        check.equal(said(impl, check, **options)["ir_hash"], plain, f"the hash with another {name}")


@clause("RT-08.1-04", "RT-02-02")
def test_one_changed_number_changes_the_hash(impl, check):
    """Programs that differ in a constant are two programs."""
    source = "module m { kernel k(x: tensor<4xint32>) { x[0] = 1; } }"
    one, other = (said(impl, check, text)["ir_hash"] for text in (source, source.replace("= 1", "= 2")))
    check.true(one != other, "the hashes differ", one)


# Sections


@clause("RT-08.1-05", "RT-08.1-06")
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_image_has_code_for_each_of_its_targets(impl, check, name):
    """Beside metadata and IR there is a section with bytes, also where a launch gives the extents (AMB-RT-60)."""
    actual = said(impl, check, PROGRAMS[name][0])
    for target in actual["targets"]:
        code = [section["bytes"] for section in actual["sections"] if section["target"] == target]
        check.true(any(code), f"there is code for {target}", code)


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        pytest.param("sm_90", "ptx", marks=[clause("RT-08.1-05"), feature("target-nvptx")], id="ptx"),
        pytest.param("gfx942", "rocdl", marks=[clause("RT-08.1-06"), feature("target-amdgcn")], id="rocdl"),
    ],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_image_can_hold_what_the_vendors_tools_take(impl, check, name, target, kind):
    """PTX or NVVM bitcode for NVIDIA, ROCDL bitcode for AMD, also where a launch gives the extents (AMB-RT-60).

    As AMB-RT-106 has it.
    """
    sections = said(impl, check, PROGRAMS[name][0], targets=[target])["sections"]
    actual = [section for section in sections if section["kind"] == kind]
    check.equal([section["target"] for section in actual], [target], f"the targets of the sections of kind {kind}")
    check.true(actual[0]["bytes"] > 0, "the section has bytes", actual[0]["bytes"])


BITCODE = ("4243c0de", "dec0170b")
"""The first bytes of LLVM bitcode, plain and within a wrapper."""


def defined(data):
    """The functions that bitcode defines and its triple, as LLVM reads them; None where llvmlite is not installed."""
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return None
    try:
        module = llvm.parse_bitcode(data)
    except RuntimeError as error:
        return str(error), []
    return module.triple, [function.name for function in module.functions if not function.is_declaration]


@feature("target-amdgcn")
@clause("RT-08.1-06")
@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_rocdl_is_bitcode_that_llvm_reads(impl, check, name, target):
    """For the vendor's triple, with the kernels defined; without llvmlite beside the suite by its first bytes alone.

    As AMB-RT-106 has it.
    """
    source, kernels = PROGRAMS[name]
    actual = [entry for entry in said(impl, check, source, targets=[target])["sections"] if entry["kind"] == "rocdl"]
    check.equal(len(actual), 1, "the number of sections of kind rocdl")
    section, *_ = actual
    data = bytes.fromhex(section.get("data", ""))
    check.equal(len(data), section["bytes"], "the bytes of the section")
    check.true(data[:4].hex() in BITCODE, "it begins as bitcode does", data[:4].hex())
    read = defined(data)
    if read is not None:
        check.true(read[0].startswith("amdgcn"), "it is read back, and for AMD", read[0])
        symbols = [symbol for symbol in read[1] if symbol.startswith("tss_kernel_")]
        check.true(len(symbols) >= kernels, f"it defines {kernels} kernels at least", read[1])


@feature("target-nvptx")
@clause("RT-08.1-05")
@pytest.mark.parametrize("name", PROGRAMS)
def test_ptx_has_an_entry_for_each_kernel(impl, check, name):
    """A visible entry at least, also of kernels whose extents a launch gives; where the section is bitcode of NVVM a
    definition, if llvmlite is there to read it."""
    source, kernels = PROGRAMS[name]
    actual = [
        section for section in said(impl, check, source, targets=["sm_90"])["sections"] if section["kind"] == "ptx"
    ]
    check.equal(len(actual), 1, "the number of sections of kind ptx")
    data = bytes.fromhex(actual[0].get("data", ""))
    if data[:4].hex() in BITCODE:
        read = defined(data)
        if read is None:
            return
        entries = [symbol for symbol in read[1] if symbol.startswith("tss_kernel_")]
    else:
        entries = re.findall(rb"^\s*\.visible\s+\.entry\s+(tss_kernel_\w+)", data, re.MULTILINE)
    check.true(len(set(entries)) >= kernels, f"it has {kernels} entries at least", entries)


@feature("target-nvptx", "target-amdgcn")
@clause("RT-08.1-05", "RT-08.1-06")
def test_an_image_can_hold_both(impl, check):
    """One image has code for devices of both vendors."""
    sections = said(impl, check, targets=["sm_90", "gfx942"])["sections"]
    actual = {(section["kind"], section["target"]) for section in sections}
    check.true(
        {("ptx", "sm_90"), ("rocdl", "gfx942")} <= actual, "there is a section for each", sorted(map(str, actual))
    )


# Metadata


@clause("RT-08.1-07")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_kernel_table_has_an_entry_for_each_name(impl, check, name):
    """The kernel table has an entry for each name, with that kernel's own parameters in declared order."""
    actual = [(parameter["name"], parameter["type"]) for parameter in kernel_of(impl, check, THREE, name)["parameters"]]
    check.equal(actual, ARGUMENTS[name], "names and types of the parameters")


@clause("RT-08.1-08")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_entry_has_its_parameter_layout(impl, check, name):
    """Offsets, sizes and the size of the buffer follow the rules of section 10."""
    entry, expected = kernel_of(impl, check, THREE, name), by_the_rule(ARGUMENTS[name])
    check.equal(tuple(Place(**parameter) for parameter in entry["parameters"]), expected.places, "the parameters")
    check.equal(entry["size"], expected.size, "the size of the buffer")


@clause("RT-08.1-08", "RT-10.1-13")
def test_dimensions_that_are_parameters_stay_where_they_are_declared(impl, check):
    """Nothing is added to the buffer for a tensor whose extents a launch gives (AMB-RT-19, AMB-RT-85)."""
    source = "module m { kernel k(N: int32, x: tensor<Nxfp32>, M: int64, y: tensor<NxMxfp32>) { x = x + x; } }"
    expected = by_the_rule([("N", "int32"), ("x", "ptr"), ("M", "int64"), ("y", "ptr")])
    entry = kernel_of(impl, check, source, "k")
    check.equal(tuple(Place(**parameter) for parameter in entry["parameters"]), expected.places, "the parameters")
    check.equal(entry["size"], expected.size, "the size of the buffer")


@clause("RT-08.1-09")
@pytest.mark.parametrize("values", POLICIES.values(), ids=POLICIES)
def test_an_image_carries_its_numerics_defaults(impl, check, values):
    """The four switches as they were given."""
    policy = dict(zip(SWITCHES, values, strict=True))
    check.equal(said(impl, check, policy=policy)["policy"], policy, "the policy")


@feature("ir-pack")
@clause("RT-08.1-12", "RT-02-01")
def test_an_image_of_ir_alone_has_metadata_too(impl, check):
    """An IR-pack has the same kernel table and names the same targets (AMB-RT-44)."""
    whole, pack = said(impl, check, THREE), said(impl, check, THREE, ir_pack=True)
    check.reading("AMB-RT-44", "ignore the word", pack == whole)
    kinds = [section["kind"] for section in pack["sections"]]
    check.equal(kinds.count("metadata"), 1, "the number of metadata sections")
    check.true(not {"ptx", "rocdl"} & set(kinds), "there is no binary section", kinds)
    tables = [[(kernel["name"], kernel["parameters"]) for kernel in found["kernels"]] for found in (pack, whole)]
    check.equal(tables[0], tables[1], "the kernel table")


@clause("RT-08.1-03")
def test_the_machine_has_devices(impl, check):
    """The machine has at least one device, whose target the compiler knows; the cases of targets rely on it."""
    first = devices(impl, check, 1)[0]
    machine = {device["id"]: device["target"] for device in check.returns(impl.runtime.tessxDevices())["devices"]}
    actual = said(impl, check, targets=[machine[first]])["targets"]
    check.equal(actual, [machine[first]], "the targets of an image for one device")

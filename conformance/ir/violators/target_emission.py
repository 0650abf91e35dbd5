"""Lowerings to Target IR and emitted texts with one wrong or missing part (8, 8.1, 8.2, 13.1 and 16)."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import ReferenceAdapter

Change = Callable[[dict[str, Any]], None]

_ANSWERS: dict[str, dict[str, Any]] = {}


class Rewriting(ReferenceAdapter):
    """The reference with texts of some kinds rewritten; answers are computed once."""

    def __init__(self, to: str, change: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
        super().__init__()
        self._to = to.split()
        self._change = change

    def language_lower(self, **request: Any) -> dict[str, Any]:
        """Return the answer, changed if it is of one of those kinds."""
        key = json.dumps(request, sort_keys=True)
        if key not in _ANSWERS:
            _ANSWERS[key] = super().language_lower(**request)
        answer = copy.deepcopy(_ANSWERS[key])
        return self._change(answer, request.get("target", "sm_90")) if request["to"] in self._to else answer


def reads(name: str, clause: str, description: str, to: str, pattern: str, text: str) -> Violation:
    """Return a violation that replaces a pattern in the text."""

    def change(answer: dict[str, Any], target: str) -> dict[str, Any]:
        return answer | {"text": re.sub(pattern, text, answer["text"], flags=re.MULTILINE)}

    return replaced(clause, description, lambda: Rewriting(to, change), name=name)


def tells(name: str, clause: str, description: str, change: Change, to: str = "target") -> Violation:
    """Return a violation that changes the metadata of each kernel."""

    def changed(answer: dict[str, Any], target: str) -> dict[str, Any]:
        for entry in answer["functions"]:
            if entry["name"].startswith("tss_kernel_"):
                change(entry)
        return answer

    return replaced(clause, description, lambda: Rewriting(to, changed), name=name)


def parameters(name: str, clause: str, description: str, change: Callable[[list[str]], list[str]]) -> Violation:
    """Return a violation whose LLVM IR declares the parameters of a kernel differently."""

    def rewritten(found: re.Match[str]) -> str:
        return f"{found[1]}({', '.join(change(found[2].split(', ')))}){found[3]}"

    def changed(answer: dict[str, Any], target: str) -> dict[str, Any]:
        return answer | {"text": re.sub(r"(?m)^(define .*?)\((.*)\)( #\d+ \{)$", rewritten, answer["text"])}

    return replaced(clause, description, lambda: Rewriting("llvm", changed), name=name)


def hidden_between(declared: list[str]) -> list[str]:
    """Return the parameters with the metadata after the buffers."""
    buffers = [parameter for parameter in declared if parameter.startswith("ptr")]
    return [*buffers, *declared[-3:], *declared[len(buffers) : -3]]


ORDER = [
    parameters("scalars_before_buffers", "LANG-16-02", "emits scalars before buffers",
        lambda declared: sorted(declared, key=lambda parameter: parameter.startswith("ptr"))),
    parameters("hidden_between", "LANG-16-03", "puts hidden metadata before the scalars", hidden_between),
    parameters("hidden_not_last", "LANG-16-04", "does not put hidden metadata last", hidden_between),
    reads("buffers_hidden_in_ptx", "LANG-16-04", "hides a float in PTX", "ptx",
        r"\.param \.u32 (tss_kernel_\w+_param_\d+\s*\))", r".param .f32 \1"),
    parameters("narrow_scalars", "LANG-08.1-03", "emits 64-bit scalars as 32",
        lambda declared: [re.sub("^i64", "i32", parameter) for parameter in declared]),
]  # fmt: skip

CODE = [
    reads("one_sm", "LANG-08-02", "emits PTX for sm_80 always", "ptx", r"\.target sm_\d+", ".target sm_80"),
    reads("contracted", "LANG-08-02", "emits the flag contract", "llvm", "= fmul ", "= fmul contract "),
    reads("fast_sums", "LANG-08-03", "emits the flag fast", "llvm", "= fadd ", "= fadd fast "),
    reads("fused_on_amd", "LANG-08-03", "fuses products and sums for AMD", "amdgcn", "v_add_f32_e32", "v_fmac_f32_e32"),
    reads("approximate", "LANG-08-02", "flushes subnormals", "ptx", r"mul\.rn\.f32", "mul.rn.ftz.f32"),
    reads("one_gfx", "LANG-08-03", "emits code for gfx908", "amdgcn", r"(amdgcn_target .*)gfx\w+", r"\1gfx908"),
    reads("triple", "LANG-08-03", "emits LLVM IR for the host", "llvm", "amdgcn-amd-amdhsa", "x86_64-linux-gnu"),
    reads("cpu", "LANG-08-02", "emits LLVM IR for no processor", "llvm", r'"target-cpu"="sm_\d+"', ""),
    reads("local", "LANG-16-01", "emits local symbols for AMD", "amdgcn", r"\.globl", ".local"),
    reads("unaligned", "LANG-16-05", "aligns shared memory to 4 bytes", "llvm", r"align 16$", "align 4"),
    reads("unaligned_tiles", "LANG-16-06", "aligns tiles to 8 bytes in PTX", "ptx", r"(\.shared \.align) 16", r"\1 8"),
    reads("bounds", "LANG-08.1-08", "allows fewer threads than a block has", "ptx", r"\.reqntid \d+", ".maxntid 1"),
    reads("generic", "LANG-08.1-02", "passes buffers as 32-bit addresses", "ptx", r"\.param \.u64", ".param .u32"),
]  # fmt: skip

INSTRUCTIONS = [
    reads("no_mma", "LANG-08.2-05", "multiplies without mma.sync", "ptx", r"mma\.sync", "fma.rn.bf16"),
    reads("no_ldmatrix", "LANG-08.2-06", "loads without ldmatrix", "ptx", r"ldmatrix\.sync", "ld.shared"),
    reads("no_copies", "LANG-08.2-07", "copies by loads and stores", "ptx", r"cp\.async\.c[ag]", "ld.global"),
    reads("no_waits", "LANG-08.2-07", "does not wait for copies", "ptx", r"^\s*cp\.async\.wait.*\n", ""),
    reads("no_bar", "LANG-08.2-08", "emits no bar.sync", "ptx", r"^\s*bar\.sync.*\n", ""),
    reads("no_shfl", "LANG-08.2-09", "exchanges without shfl.sync", "ptx", r"shfl\.sync\.down", "ld.shared"),
    reads("no_mfma", "LANG-08.2-10", "multiplies without mfma", "amdgcn", r"v_mfma_f32_\w+", "v_dot2_f32_f16"),
    reads("no_lds_reads", "LANG-08.2-11", "reads the LDS by flat loads", "amdgcn", r"ds_read_?\w*", "flat_load_dword"),
    reads("no_lds_writes", "LANG-08.2-11", "writes the LDS by flat stores", "amdgcn",
          r"ds_write_?\w*", "flat_store_dword"),
    reads("no_swizzles", "LANG-08.2-12", "exchanges without DS swizzles", "amdgcn", r"ds_bpermute_b32", "v_mov_b32"),
    reads("half_sample", "LANG-13.1-07", "multiplies the sample in fp16", "llvm", r"(nvvm\.mma\.\S*)\.bf16", r"\1.f16"),
]  # fmt: skip


def _renamed(old: str, new: str) -> Change:
    def change(entry: dict[str, Any]) -> None:
        for operation in entry["operations"]:
            operation["name"] = re.sub(old, new, operation["name"])

    return change


def _stated(name: str, value: Callable[[Any], Any]) -> Change:
    def change(entry: dict[str, Any]) -> None:
        entry["attributes"][name] = value(entry["attributes"][name])

    return change


def _without(name: str) -> Change:
    return lambda entry: entry["attributes"].pop(name)


def _arguments(order: Callable[[list[str]], list[str]]) -> Change:
    def change(entry: dict[str, Any]) -> None:
        entry["arguments"] = order(entry["arguments"])

    return change


LOWERED = [
    tells("tile_operations", "LANG-08-01", "leaves operations of Tile IR", _renamed(r"^scf\.if$", "tessera.tile.if")),
    tells("foreign", "LANG-08-01", "uses the other vendor's barrier", _renamed(r"^rocdl\.barrier$", "nvvm.barrier0")),
    tells("no_extents", "LANG-08.1-01", "drops the grid", _without("grid")),
    tells("grid_turned", "LANG-08.1-07", "swaps grid components", _stated("grid", lambda it: [it[1], it[0], it[2]])),
    tells("one_stage", "LANG-08.1-09", "declares too little", _stated("smem_bytes", lambda size: size - 16)),
    tells("other_name", "LANG-08-01", "makes every kernel for sm_80", _stated("target", lambda name: "sm_80")),
    tells("generic_pointers", "LANG-08.1-02", "passes pointers of no space",
          _arguments(lambda types: [type_.replace("<1>", "<0>") for type_ in types])),
    tells("hidden_before_scalars", "LANG-16-04", "lowers hidden metadata before the scalars",
          _arguments(lambda types: [*(type_ for type_ in types if type_.startswith("!")), "int16",
                                    *(type_ for type_ in types if not type_.startswith("!"))])),
    tells("no_scalars", "LANG-16-03", "drops scalars",
          _arguments(lambda types: [type_ for type_ in types if type_.startswith("!")])),
    tells("narrowed", "LANG-08.1-03", "lowers 64-bit scalars to 32",
          _arguments(lambda types: [type_.replace("int64", "int32") for type_ in types])),
]  # fmt: skip


class Obliging(ReferenceAdapter):
    """The reference, which answers a request for the other vendor's assembly with its own."""

    def language_lower(self, **request: Any) -> dict[str, Any]:
        """Return the assembly of the target."""
        if request["to"] in ("ptx", "amdgcn"):
            request["to"] = "ptx" if request.get("target", "sm_90").startswith("sm") else "amdgcn"
        return super().language_lower(**request)


OBLIGING = replaced("LANG-08-03", "gives whatever assembly the target has", Obliging, name="obliging")

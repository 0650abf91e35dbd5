"""Lowerings to Target IR and emitted texts with one wrong or missing part (8, 8.1, 8.2, 13.1 and 16)."""

import copy
import json
import re

from .changes import wrapped

ANSWERS = {}


def rewriting(clause, name, description, to, change):
    """Return a violation that changes answers of one kind of lowering, which are computed once."""

    def lower(usual, self, **request):
        key = json.dumps(request, sort_keys=True)
        if key not in ANSWERS:
            ANSWERS[key] = usual(self, **request)
        answer = copy.deepcopy(ANSWERS[key])
        return change(answer) if request["to"] == to else answer

    return wrapped(clause, name, description, "adapter.ReferenceAdapter.language_lower", lower)


def reads(clause, name, description, to, pattern, text):
    """Return a violation that replaces a pattern in the text."""

    def change(answer):
        return answer | {"text": re.sub(pattern, text, answer["text"], flags=re.MULTILINE)}

    return rewriting(clause, name, description, to, change)


def tells(clause, name, description, change):
    """Return a violation that changes the metadata of each kernel."""

    def changed(answer):
        for entry in answer["functions"]:
            if entry["name"].startswith("tss_kernel_"):
                change(entry)
        return answer

    return rewriting(clause, name, description, "target", changed)


def parameters(clause, name, description, change):
    """Return a violation whose LLVM IR declares the parameters of a kernel differently."""

    def declared(found):
        return f"{found[1]}({', '.join(change(found[2].split(', ')))}){found[3]}"

    return reads(clause, name, description, "llvm", r"^(define .*?)\((.*)\)( #\d+ \{)$", declared)


def hidden_between(declared):
    buffers = [parameter for parameter in declared if parameter.startswith("ptr")]
    return [*buffers, *declared[-3:], *declared[len(buffers) : -3]]


ORDER_AND_CODE = [
    parameters("LANG-16-02", "scalars_before_buffers", "emits scalars before buffers",
        lambda declared: sorted(declared, key=lambda parameter: parameter.startswith("ptr"))),
    parameters("LANG-16-03", "hidden_between", "puts hidden metadata before the scalars", hidden_between),
    parameters("LANG-16-04", "hidden_not_last", "does not put hidden metadata last", hidden_between),
    reads("LANG-16-04", "buffers_hidden_in_ptx", "hides a float in PTX", "ptx",
        r"\.param \.u32 (tss_kernel_\w+_param_\d+\s*\))", r".param .f32 \1"),
    parameters("LANG-08.1-03", "narrow_scalars", "emits 64-bit scalars as 32",
        lambda declared: [re.sub("^i64", "i32", parameter) for parameter in declared]),
    reads("LANG-08-02", "one_sm", "emits PTX for sm_80 always", "ptx", r"\.target sm_\d+", ".target sm_80"),
    reads("LANG-08-02", "contracted", "emits the flag contract", "llvm", "= fmul ", "= fmul contract "),
    reads("LANG-08-03", "fast_sums", "emits the flag fast", "llvm", "= fadd ", "= fadd fast "),
    reads("LANG-08-03", "fused_on_amd", "fuses products and sums for AMD", "amdgcn", "v_add_f32_e32", "v_fmac_f32_e32"),
    reads("LANG-08-02", "approximate", "flushes subnormals", "ptx", r"mul\.rn\.f32", "mul.rn.ftz.f32"),
    reads("LANG-08-03", "one_gfx", "emits code for gfx908", "amdgcn", r"(amdgcn_target .*)gfx\w+", r"\1gfx908"),
    reads("LANG-08-03", "triple", "emits LLVM IR for the host", "llvm", "amdgcn-amd-amdhsa", "x86_64-linux-gnu"),
    reads("LANG-08-02", "cpu", "emits LLVM IR for no processor", "llvm", r'"target-cpu"="sm_\d+"', ""),
    reads("LANG-16-01", "local", "emits local symbols for AMD", "amdgcn", r"\.globl", ".local"),
    reads("LANG-16-05", "unaligned", "aligns shared memory to 4 bytes", "llvm", r"align 16$", "align 4"),
    reads("LANG-16-06", "unaligned_tiles", "aligns tiles to 8 bytes in PTX", "ptx", r"(\.shared \.align) 16", r"\1 8"),
    reads("LANG-08.1-08", "bounds", "allows fewer threads than a block has", "ptx", r"\.reqntid \d+", ".maxntid 1"),
    reads("LANG-08.1-02", "generic", "passes buffers as 32-bit addresses", "ptx", r"\.param \.u64", ".param .u32"),
]  # fmt: skip

INSTRUCTIONS = [
    reads("LANG-08.2-05", "no_mma", "multiplies without mma.sync", "ptx", r"mma\.sync", "fma.rn.bf16"),
    reads("LANG-08.2-05", "tf32_by_16", "multiplies tf32 by m16n8k16, which PTX has for 16 bits", "ptx",
        r"mma\.sync\.aligned\.m16n8k8(?=.*tf32)", "mma.sync.aligned.m16n8k16"),
    reads("LANG-08.2-06", "no_ldmatrix", "loads without ldmatrix", "ptx", r"ldmatrix\.sync", "ld.shared"),
    reads("LANG-08.2-07", "no_copies", "copies by loads and stores", "ptx", r"cp\.async\.c[ag]", "ld.global"),
    reads("LANG-08.2-07", "no_waits", "does not wait for copies", "ptx", r"^\s*cp\.async\.wait.*\n", ""),
    reads("LANG-08.2-08", "no_bar", "emits no bar.sync", "ptx", r"^\s*bar\.sync.*\n", ""),
    reads("LANG-08.2-09", "no_shfl", "exchanges without shfl.sync", "ptx", r"shfl\.sync\.down", "ld.shared"),
    reads("LANG-08.2-10", "no_mfma", "multiplies without mfma", "amdgcn", r"v_mfma_f32_\w+", "v_dot2_f32_f16"),
    reads("LANG-08.2-11", "no_lds_reads", "reads the LDS by flat loads", "amdgcn", r"ds_read_?\w*", "flat_load_dword"),
    reads("LANG-08.2-11", "no_lds_writes", "writes the LDS by flat stores", "amdgcn", r"ds_write_?\w*",
        "flat_store_dword"),
    reads("LANG-08.2-12", "no_swizzles", "exchanges without DS swizzles", "amdgcn", r"ds_bpermute_b32", "v_mov_b32"),
    reads("LANG-13.1-07", "half_sample", "multiplies the sample in fp16", "llvm", r"(nvvm\.mma\.\S*)\.bf16", r"\1.f16"),
]  # fmt: skip


def _renamed(old, new):
    def change(entry):
        for operation in entry["operations"]:
            operation["name"] = re.sub(old, new, operation["name"])

    return change


def _stated(name, value):
    return lambda entry: entry["attributes"].update({name: value(entry["attributes"][name])})


def _arguments(order):
    return lambda entry: entry.update(arguments=order(entry["arguments"]))


LOWERED = [
    tells("LANG-08-01", "tile_operations", "leaves operations of Tile IR", _renamed(r"^scf\.if$", "tessera.tile.if")),
    tells("LANG-08-01", "foreign", "uses the other vendor's barrier", _renamed(r"^rocdl\.barrier$", "nvvm.barrier0")),
    tells("LANG-08.1-01", "no_extents", "drops the grid", lambda entry: entry["attributes"].pop("grid")),
    tells("LANG-08.1-07", "grid_turned", "swaps grid components", _stated("grid", lambda it: [it[1], it[0], it[2]])),
    tells("LANG-08.1-09", "one_stage", "declares too little", _stated("smem_bytes", lambda size: size - 16)),
    tells("LANG-08-01", "other_name", "makes every kernel for sm_80", _stated("target", lambda name: "sm_80")),
    tells("LANG-08.1-02", "generic_pointers", "passes pointers of no space",
        _arguments(lambda types: [type_.replace("<1>", "<0>") for type_ in types])),
    tells("LANG-16-04", "hidden_before_scalars", "lowers hidden metadata before the scalars", _arguments(lambda types:
            sorted([*types, "int16"], key=lambda type_: (not type_.startswith("!"), type_ != "int16")))),
    tells("LANG-16-03", "no_scalars", "drops scalars",
        _arguments(lambda types: [type_ for type_ in types if type_.startswith("!")])),
    tells("LANG-08.1-03", "narrowed", "lowers 64-bit scalars to 32",
        _arguments(lambda types: [type_.replace("int64", "int32") for type_ in types])),
]  # fmt: skip


def obliging(usual, self, **request):
    if request["to"] in ("ptx", "amdgcn"):
        request["to"] = "ptx" if request.get("target", "sm_90").startswith("sm") else "amdgcn"
    return usual(self, **request)


OBLIGING = wrapped(
    "LANG-08-03",
    "obliging",
    "gives whatever assembly the target has",
    "adapter.ReferenceAdapter.language_lower",
    obliging,
)

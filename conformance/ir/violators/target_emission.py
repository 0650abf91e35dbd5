"""Lowerings to Target IR and emitted texts with one wrong or missing part (8, 8.1, 8.2, 13.1 and 16)."""

import copy
import json
import re

from .changes import answers

ANSWERS = {}


def rewriting(name, clause, description, to, change):
    """Return a violation that changes answers of one kind of lowering, which are computed once."""

    def lower(usual, self, **request):
        key = json.dumps(request, sort_keys=True)
        if key not in ANSWERS:
            ANSWERS[key] = usual(self, **request)
        answer = copy.deepcopy(ANSWERS[key])
        return change(answer) if request["to"] == to else answer

    return answers(name, clause, description, "language_lower", lower)


def reads(name, clause, description, to, pattern, text):
    """Return a violation that replaces a pattern in the text."""

    def change(answer):
        return answer | {"text": re.sub(pattern, text, answer["text"], flags=re.MULTILINE)}

    return rewriting(name, clause, description, to, change)


def tells(name, clause, description, change):
    """Return a violation that changes the metadata of each kernel."""

    def changed(answer):
        for entry in answer["functions"]:
            if entry["name"].startswith("tss_kernel_"):
                change(entry)
        return answer

    return rewriting(name, clause, description, "target", changed)


def parameters(name, clause, description, change):
    """Return a violation whose LLVM IR declares the parameters of a kernel differently."""

    def declared(found):
        return f"{found[1]}({', '.join(change(found[2].split(', ')))}){found[3]}"

    return reads(name, clause, description, "llvm", r"^(define .*?)\((.*)\)( #\d+ \{)$", declared)


def hidden_between(declared):
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
    reads("no_lds_writes", "LANG-08.2-11", "writes the LDS by flat stores", "amdgcn", r"ds_write_?\w*",
        "flat_store_dword"),
    reads("no_swizzles", "LANG-08.2-12", "exchanges without DS swizzles", "amdgcn", r"ds_bpermute_b32", "v_mov_b32"),
    reads("half_sample", "LANG-13.1-07", "multiplies the sample in fp16", "llvm", r"(nvvm\.mma\.\S*)\.bf16", r"\1.f16"),
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
    tells("tile_operations", "LANG-08-01", "leaves operations of Tile IR", _renamed(r"^scf\.if$", "tessera.tile.if")),
    tells("foreign", "LANG-08-01", "uses the other vendor's barrier", _renamed(r"^rocdl\.barrier$", "nvvm.barrier0")),
    tells("no_extents", "LANG-08.1-01", "drops the grid", lambda entry: entry["attributes"].pop("grid")),
    tells("grid_turned", "LANG-08.1-07", "swaps grid components", _stated("grid", lambda it: [it[1], it[0], it[2]])),
    tells("one_stage", "LANG-08.1-09", "declares too little", _stated("smem_bytes", lambda size: size - 16)),
    tells("other_name", "LANG-08-01", "makes every kernel for sm_80", _stated("target", lambda name: "sm_80")),
    tells("generic_pointers", "LANG-08.1-02", "passes pointers of no space",
        _arguments(lambda types: [type_.replace("<1>", "<0>") for type_ in types])),
    tells("hidden_before_scalars", "LANG-16-04", "lowers hidden metadata before the scalars", _arguments(lambda types:
            sorted([*types, "int16"], key=lambda type_: (not type_.startswith("!"), type_ != "int16")))),
    tells("no_scalars", "LANG-16-03", "drops scalars",
        _arguments(lambda types: [type_ for type_ in types if type_.startswith("!")])),
    tells("narrowed", "LANG-08.1-03", "lowers 64-bit scalars to 32",
        _arguments(lambda types: [type_.replace("int64", "int32") for type_ in types])),
]  # fmt: skip


def obliging(usual, self, **request):
    if request["to"] in ("ptx", "amdgcn"):
        request["to"] = "ptx" if request.get("target", "sm_90").startswith("sm") else "amdgcn"
    return usual(self, **request)


OBLIGING = answers("obliging", "LANG-08-03", "gives whatever assembly the target has", "language_lower", obliging)

"""Module images whose metadata is incomplete or wrong (runtime specification, 2, 8.1, 16)."""

import hashlib

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import around, changed, nothing, wrapped

INSPECT = "adapter.ReferenceAdapter.abi_inspect"


def said(clause, name, description, change):
    """Return a violation that changes an image's metadata; `change` also gets the image."""

    def inspect(usual, self, *, image):
        found = usual(self, image=image)
        return found | change(found, image)

    return changed(clause, name, description, (INSPECT, around(inspect)))


def kernels(clause, name, description, change):
    return said(clause, name, description, lambda found, _: {"kernels": change(found["kernels"])})


def sections(clause, name, description, change):
    return said(clause, name, description, lambda found, _: {"sections": change(found["sections"])})


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def packed(entry):
    end, places = 0, []
    for place in entry["parameters"]:
        places.append(place | {"offset": end})
        end += place["size"]
    return entry | {"parameters": places}


def of_one_product(usual, kernel, target):
    return None if kernel.name == "sum" else usual(kernel, target)


@violates("RT-08.1-01", "looks up elsewhere what an image lacks")
class Damaged(ReferenceAdapter):
    last = None

    def abi_compile(self, **request):
        answer = super().abi_compile(**request)
        self.last = answer["image"]
        return answer

    def abi_inspect(self, *, image):
        try:
            return super().abi_inspect(image=image)
        except Refusal:
            if self.last is None:
                raise
            return super().abi_inspect(image=self.last)


@violates("RT-02-02", "counts programs instead of hashing them")
class Counted(ReferenceAdapter):
    def __init__(self):
        super().__init__()
        self.numbers = {}

    def abi_compile(self, **request):
        answer = super().abi_compile(**request)
        self.numbers[answer["image"]] = len(self.numbers) + 1
        return answer

    def abi_inspect(self, *, image):
        return super().abi_inspect(image=image) | {"ir_hash": f"{len(self.numbers):064x}"}


VIOLATORS = [
    kernels("RT-02-01", "first_kernel", "holds one kernel only", lambda every: every[:1]),
    kernels("RT-08.1-07", "pointers_told_first", "lists pointers first", lambda every: [
        entry | {"parameters": sorted(entry["parameters"], key=lambda place: place["type"] != "ptr")}
        for entry in every]),
    kernels("RT-08.1-08", "offsets_without_padding", "has offsets without padding",
        lambda all_: list(map(packed, all_))),
    said("RT-08.1-02", "no_minor", "keeps the major number only",
        lambda meta, _: {"abi_version": [meta["abi_version"][0], 0]}),
    said("RT-16-01", "one_number", "adds the two numbers",
        lambda meta, _: {"abi_version": [sum(meta["abi_version"]), 0]}),
    said("RT-02-04", "version_of_the_runtime", "says the runtime's version", lambda *_: {"abi_version": [1, 0]}),
    said("RT-08.1-03", "targets_of_the_machine", "names sm_90 always", lambda *_: {"targets": ["sm_90"]}),
    said("RT-02-03", "every_target", "names every target", lambda *_: {"targets": ["gfx942", "sm_80", "sm_90"]}),
    said("RT-08.1-04", "short_hash", "has a hash of 4 bytes", lambda meta, _: {"ir_hash": meta["ir_hash"][:8]}),
    said("RT-08.1-04", "hash_of_the_image", "hashes the image", lambda _, image: {"ir_hash": digest(image)}),
    said("RT-02-02", "hash_of_the_names", "hashes the names of the kernels",
        lambda meta, _: {"ir_hash": digest("".join(kernel["name"] for kernel in meta["kernels"]))}),
    said("RT-08.1-09", "no_fast_math", "forgets fast math",
        lambda meta, _: {"policy": meta["policy"] and meta["policy"] | {"allowFastMath": 0}}),
    sections("RT-08.1-05", "empty_ptx", "has empty PTX",
        lambda every: [section | {"bytes": 0} if section["kind"] == "ptx" else section for section in every]),
    sections("RT-08.1-06", "rocdl_for_all", "has ROCDL for no target",
        lambda every: [section | {"target": None} if section["kind"] == "rocdl" else section for section in every]),
    sections("RT-08.1-05", "one_vendor", "holds one binary only", lambda every:
        [section for i, section in enumerate(every) if section["kind"] not in ("ptx", "rocdl") or i == 3]),
    sections("RT-08.1-12", "empty_metadata", "has empty metadata", lambda every: [every[0] | {"bytes": 0}, *every[1:]]),
    *(wrapped(clause, name, description, "compilation.images.example", change)
        for clause, name, description, change in (
        ("RT-08.1-05", "open_without_ptx", "holds IR alone of kernels with open extents", nothing),
        ("RT-08.1-06", "open_without_rocdl", "holds no bitcode of kernels with open extents", nothing),
        ("RT-08.1-05", "some_open_without_ptx", "leaves a kernel with open extents out of PTX", of_one_product),
        ("RT-08.1-06", "some_open_without_rocdl", "leaves a kernel with open extents out of bitcode", of_one_product))),
]  # fmt: skip

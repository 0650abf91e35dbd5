"""Runtimes that read an image differently from its content (runtime specification, 2, 8.1, 10.3, 16)."""

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import violates

from ...runtime.violators.changes import ARCH_MISMATCH, INVALID, BuildsOnce, answering, restating
from ...runtime.violators.module_versions import loading
from .kernel_buffers import reading, sorted_by


def first_alone(adapter, call, given):
    loaded = dict(adapter.runtime.handles.live("module"))[given["module"]]
    if given["name"] not in [kernel.name for kernel in loaded.fatbin.metadata.kernels][:1]:
        raise Refusal(INVALID, "call", "tessKernelGet: no such kernel")
    return call(**given)


def without_marks(adapter, call, given):
    name = given["name"]
    return call(**given | {"name": name.split(".")[-1].split("::")[-1].lstrip("@") if isinstance(name, str) else name})


_LAST = []


@violates("RT-08.1-01", "loads what was compiled last, whatever the image")
class LastCompiled(BuildsOnce):
    def abi_compile(self, **arguments):
        answer = super().abi_compile(**arguments)
        _LAST[:] = [answer["image"]]
        return answer

    def runtime_tessModuleLoad(self, *, image, size=None, **arguments):  # noqa: N802
        if isinstance(image, str) and _LAST and image != _LAST[0]:
            image, size = _LAST[0], len(_LAST[0]) // 2
        return super().runtime_tessModuleLoad(image=image, size=size, **arguments)


VIOLATORS = [
    answering("RT-02-01", "first_kernel_alone", "finds one kernel of a module", "tessKernelGet", first_alone),
    answering("RT-10.3-02", "with_marks", "finds kernels by qualified names", "tessKernelGet", without_marks),
    reading("RT-08.1-08", "layout_pointers_first", "takes pointers first", sorted_by(lambda slot: slot.type != "ptr")),
    loading("RT-08.1-02", "loads_every_major", "loads every major", lambda module, own: module[1] <= own[1]),
    loading("RT-16-01", "pair_turned", "takes the pair the other way round", lambda module, own: module[1] == own[0]),
    loading("RT-02-04", "loads_every_version", "loads modules of every version", lambda module, own: True),
    restating("RT-08.1-03", "foreign_images_are_loaded", "takes an image for other devices as loaded",
        "tessModuleLoad", ARCH_MISMATCH, ""),
    restating("RT-02-03", "foreign_images_are_damaged", "takes an image for other devices as damaged",
        "tessModuleLoad", ARCH_MISMATCH, INVALID),
]  # fmt: skip

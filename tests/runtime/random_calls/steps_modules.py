"""Steps: modules and their kernels (runtime spec 4.5, 8, 16)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tessera_reference.abi.status import Status

from .live_objects import Module
from .queued_work import KERNELS
from .session import IMAGES, OK, Session, image
from .steps_live import INVALID, MISSING, end_module, missing

__all__ = ["STEPS"]

VIOLATION = Status.TESS_ERR_DETERMINISM_VIOLATION
ARCH = Status.TESS_ERR_ARCH_MISMATCH
VERSION = Status.TESS_ERR_ABI_VERSION_MISMATCH


def module_load(session: Session) -> None:
    if len(session.world.modules) >= 3:
        return
    context, name = session.any("context"), session.pick(("both", "both", "both", *IMAGES)) if session.begun else "both"
    on, data = session.world.contexts.get(context), image(name)
    targets, policy, version = IMAGES[name]
    here = {each.target for each in session.topology.devices}
    if on is None:
        wrong = {MISSING}
    elif version is not None:
        wrong = {VERSION}
    elif not here & set(targets):
        wrong = {ARCH}
    else:
        wrong = {VIOLATION} if policy is not None and on.forbid_fast_math and policy.allowFastMath else set()
    given: Any = data
    if session.chance(20):
        given = session.pick((bytearray, memoryview))(data)
    arguments = {"ctx": context, "image": given, "size": len(data)}
    kinds = {"ctx": "context", "image": "image", "size": "size"}
    status, module = session.call("tessModuleLoad", arguments, kinds, wrong, outputs=("module",))
    if status is OK and on is not None:
        told = None if policy is None else asdict(policy)
        session.world.modules[module] = Module(on, frozenset(targets), told)


def module_load_damaged(session: Session) -> None:
    """An image with bytes changed, cut off, or moved."""
    context = session.any("context")
    data = bytearray(image(session.pick(("both", "sm_90"))))
    for _ in range(1 + session.below(3)):
        kind, at = session.below(4), session.below(len(data)) if session.chance(50) else session.below(200)
        if kind == 0:
            data[at] ^= 1 + session.below(255)
        elif kind == 1:
            del data[at : at + 1 + session.below(64)]
        elif kind == 2:
            data[at:at] = session.bytes(1 + session.below(64))
        else:
            data[at : at + 8] = session.pick((bytes(8), b"\xff" * 8, (2**63).to_bytes(8, "little")))
    if bytes(data) == image("both") or bytes(data) == image("sm_90"):
        return
    wrong = {INVALID, VERSION} if context else {MISSING}
    arguments = {"ctx": context, "image": bytes(data), "size": len(data)}
    session.call("tessModuleLoad", arguments, {}, wrong, outputs=("module",))


def module_unload(session: Session) -> None:
    module = session.any("module")
    status, _ = session.call("tessModuleUnload", {"module": module}, {"module": "module"}, missing(module))
    if status is OK:
        world = session.world
        world.drain(world.of_context(world.modules[module].context))
        end_module(session, module)


def kernel_get(session: Session) -> None:
    module, name = session.any("module"), session.pick((*KERNELS, "met", "nothing"))
    arguments, kinds = {"module": module, "name": name}, {"module": "module", "name": "name"}
    status, handle = session.call("tessKernelGet", arguments, kinds, missing(module), outputs=("kernel",))
    if status is not OK:
        return
    known = session.world.modules[module].kernels.setdefault(name, handle)
    if known != handle:
        raise session.wrong(f"kernel {name} is {handle}, which was {known}")
    session.world.kernels[handle] = (session.world.modules[module], name)


def explain(session: Session) -> None:
    module = session.any("module")
    session.call("tessxExplain", {"module": module}, {"module": "module"}, missing(module), outputs=("explanation",))


STEPS = {module_load: 4, module_load_damaged: 1, module_unload: 1, kernel_get: 5, explain: 1}

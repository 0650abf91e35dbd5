"""Loops compiled for this machine by LLVM, where llvmlite is installed; each stands beside its definition in numpy.

Compiling takes a twentieth of a second, once in a process; nothing is kept on disk. No instruction has fast-math
flags, so that each is rounded as written. TESSERA_PLAIN_NUMERICS=1 does without.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def wanted() -> bool:
    """True unless the environment asks for the definitions alone."""
    return os.environ.get("TESSERA_PLAIN_NUMERICS", "") in ("", "0")


def compile_loops(name: str, instructions: Callable[[Any], Any]) -> tuple[int, Any] | None:
    """Return the address of a function of a module, which `instructions` makes of `llvmlite.ir`, and its engine.

    The code lives as long as the engine. None without llvmlite.
    """
    try:
        llvm, ir = (importlib.import_module(f"llvmlite.{part}") for part in ("binding", "ir"))
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, jit=True
    )
    module = llvm.parse_assembly(str(instructions(ir)))
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine.get_function_address(name), engine


@contextmanager
def loop(build: Any, first: Any, end: Any, step: int) -> Iterator[Any]:
    """Build instructions that run for an index from `first` to below `end`."""
    before, (head, body, after) = build.block, (build.append_basic_block() for _ in range(3))
    build.branch(head)
    build.position_at_end(head)
    index = build.phi(first.type)
    index.add_incoming(first, before)
    build.cbranch(build.icmp_signed("<", index, end), body, after)
    build.position_at_end(body)
    yield index
    index.add_incoming(build.add(index, first.type(step)), build.block)
    build.branch(head)
    build.position_at_end(after)

"""Compile LLVM's IR to object code, and load that into memory, by llvmlite, which is optional."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

__all__ = ["assembly", "load", "object_code", "why_missing"]


def why_missing() -> str:
    """Return why no machine code can be made here; empty if it can."""
    import platform

    if platform.machine() not in ("x86_64", "AMD64"):
        return f"machine code is made for x86-64 only, and this is {platform.machine()}"
    return "" if find_spec("llvmlite") else "llvmlite is not installed: pip install 'pyop-core[jit]'"


@cache
def _llvm() -> Any:
    import llvmlite.binding as llvm  # on first use

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of the instructions in the text
    return llvm


def _machine_new() -> Any:
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(llvm.get_host_cpu_name(), features, opt=2, jit=True)


_machine = cache(_machine_new)


def _optimized(ir: str) -> Any:
    """Return the module after LLVM's passes for a single function.

    The vectoriser finds nothing in loops that may leave at every element. llvmlite never frees the passes, 35 KB a run,
    so equal text is compiled once.
    """
    llvm, machine = _llvm(), _machine()
    head = f'target triple = "{machine.triple}"\ntarget datalayout = "{machine.target_data}"\n'
    module = llvm.parse_assembly(head + ir)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    inliner.run(module, builder)
    builder.getFunctionPassManager().run(module.get_function("tape"), builder)
    return module


@lru_cache(maxsize=512)
def object_code(ir: str) -> bytes:
    """Return the object file of this IR."""
    code: bytes = _machine().emit_object(_optimized(ir))
    return code


def load(code: bytes) -> tuple[int, object]:
    """Return the address of the function `tape` of an object file, and the object that keeps it in memory."""
    llvm = _llvm()
    # An engine takes its target machine with it when it ends, and leaves nothing behind.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(f'target triple = "{_machine().triple}"'), _machine_new())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address("tape")
    if not address:
        raise RuntimeError("the object file has no function")
    return address, engine


def assembly(ir: str) -> str:
    """Return the assembly that the processor runs."""
    return str(_machine().emit_assembly(_optimized(ir)))

"""Entries of the fused engine: the functions that Python calls, each compiled in a process of its own.

A process that compiled an entry would call its helpers as they were compiled before it, one by one. A process that
loads the entry calls the copies that were optimised within it. Both are right, and their last bits differ. Hence no
process calls what it compiled: a child compiles an entry into the cache, and every process loads it from there. Where
several ask for one at once, one has it compiled and the others wait.
"""

import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from importlib import import_module
from itertools import count
from zlib import crc32

from filelock import FileLock
from numba import njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen

# Sums may be reordered and products fused; NaN and infinity keep their meaning, so a run that diverges shows it.
OPTIONS = dict(fastmath={"contract", "reassoc", "nsz"}, error_model="numpy", nogil=True)
COMPILED = OPTIONS | dict(no_cpython_wrapper=True, no_cfunc_wrapper=True)  # Python calls entries alone
CHILD = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from cot2lib.fast.entries import compile_here
compile_here(*pickle.load(sys.stdin.buffer))
"""
apart = True  # whether a child compiles


class _Cache(FunctionCache):
    """Numba's cache of a function, in which a child puts what is missing."""

    def load_overload(self, sig, target_context):
        found = super().load_overload(sig, target_context)
        if found is not None or not apart:
            return found
        asked = self._py_func.__module__, self._py_func.__name__, sig
        with ExitStack() as alone:
            with suppress(OSError, NotImplementedError):  # where files cannot be locked, two compile at once
                alone.enter_context(FileLock(f"{self.cache_path}.{self._py_func.__name__}.lock"))
            if super().load_overload(sig, target_context) is None:  # nor did another process compile it meanwhile
                _announce(self._py_func.__name__)
                with suppress(OSError):  # where no process may be begun
                    given = pickle.dumps(sys.path) + pickle.dumps(asked)
                    subprocess.run([sys.executable, "-c", CHILD], input=given, capture_output=True)
        return super().load_overload(sig, target_context)  # nothing if the child failed: compiling here says why


def _announce(entry: str) -> None:
    """Say what takes so long."""
    from cot2lib.kit.timing import say  # torch comes with it, which a child does without

    say(f"compiling `{entry}` of the fused engine, once for this version: about 20 s on an idle core")


def entry_point(function: Callable):
    """A function as one that Python calls."""
    compiled = njit(cache=True, **OPTIONS)(function)
    compiled._cache = _Cache(function)
    return compiled


def compile_here(module: str, name: str, kinds: tuple) -> None:
    """Compile an entry for arguments of some Numba types in this process, which does nothing else.

    Each entry numbers its symbols from a place of its own. If two symbols had one name, the one that is loaded first
    would serve both entries. Python's collector rests: Numba makes millions of objects, and most stay.
    """
    global apart
    gc.disable()
    apart, FunctionIdentity._unique_ids = False, count(crc32(name.encode()))
    _optimize_nothing_but(name)
    getattr(import_module(module), name).compile(kinds)


def _optimize_nothing_but(entry: str) -> None:
    """Have helpers optimised and emitted as parts of an entry alone.

    Numba would do both for each helper by itself, and again for whatever calls it, level by level.
    """
    optimize, emit = JITCodeLibrary._optimize_final_module, JITCodeLibrary._finalize_final_module
    give_environment = JITCPUCodegen.set_env

    def optimize_entry(library):
        if library.name == entry:
            optimize(library)

    def emit_entry(library):
        if library.name == entry:
            emit(library)
        library._finalized = True

    def give_emitted(codegen, place, environment):  # what was not emitted has no place for one
        if codegen._engine.get_global_value_address(place):
            give_environment(codegen, place, environment)

    JITCodeLibrary._optimize_final_module, JITCodeLibrary._finalize_final_module = optimize_entry, emit_entry
    JITCPUCodegen.set_env = give_emitted

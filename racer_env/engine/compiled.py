"""Compilation of the engine's functions with numba, and the cache of their machine code.

numba's own cache notices changes only in the file of the cached function, not in the files of the functions compiled
into it. The cache here is keyed by the source of the whole engine, so an edited engine never runs old machine code.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit, typeof
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering

Compiled = Any
"""Array or record as compiled code sees it: fields are attributes, unlike those of Python's arrays."""

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""Options of every function. `_nrt`: without memory management arrays are not reference-counted, which would take
longer than the work of a tick; compiled functions therefore cannot create arrays."""
_REORDERED = {"contract", "reassoc", "nsz"}


@cache
def source_hash(folder: Path = Path(__file__).parent) -> str:
    """Return a short hash of all source files of the engine, or of another package."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class _EngineCache(FunctionCache):  # type: ignore[misc]
    """File cache of numba with the hash of the whole engine and of the function's own package in its key."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._folder = Path(function.__code__.co_filename).parent

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), source_hash(), source_hash(self._folder))

    def holds(self, types: tuple[Any, ...], codegen: Any) -> bool:
        return self._cache_file.load(self._index_key(types, codegen)) is not None


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a function that only compiled functions call: it is optimised within each of them, not on its own.

    numba would also compile it to machine code of its own, which nobody calls: a quarter of the engine's compilation.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: only machine code that is called from Python has an environment."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    """The usual lowering, into the library of a part."""

    _name = "racer_part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return bool(super().run_pass(state))


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """The usual compiler, but for the library."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (_PartLowering if each is NativeLowering else each, description) for each, description in pipeline.passes
        ]
        pipeline.finalize()
        return [pipeline]


_INTERNAL = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _PartCompiler}
"""Options of functions that Python never calls: no wrappers are compiled for them."""


def part(function: Function) -> Function:
    """Compile a function that only compiled functions call; it is inlined into them."""
    return cast(Function, njit(forceinline=True, **_INTERNAL)(function))


def fast_part(function: Function) -> Function:
    """Copy a function into every `kernel` that calls it; calls would keep loops from being vectorised."""
    return cast(Function, njit(inline="always", fastmath=_REORDERED, **_INTERNAL)(function))


def shared(function: Function) -> Function:
    """Compile a function that only compiled functions call, without inlining: for large ones with several callers."""
    return cast(Function, njit(**_INTERNAL)(function))


def entry(function: Function) -> Function:
    """Compile a function that Python calls, and cache its machine code on disk if possible."""
    return _cached(njit(**_OPTIONS)(function), function)


def kernel(function: Function) -> Function:
    """Compile an entry whose sums may be reordered and whose products and sums may be fused, for vector instructions.

    For networks only: results depend on the processor in the last bits.
    """
    return _cached(njit(fastmath=_REORDERED, **_OPTIONS)(function), function)


def _cached(dispatcher: Any, function: Function) -> Function:
    with suppress(RuntimeError):  # no writable cache folder: every process compiles
        dispatcher._cache = _EngineCache(function)
    return cast(Function, dispatcher)


def bind(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of an entry for these argument types, compiled now or loaded from disk.

    The result skips numba's type check of every argument, which takes longer than a car's tick: call it only with
    arguments of the same types.
    """
    types = tuple(typeof(argument) for argument in arguments)
    return cast(Callable[..., Any], cast(Any, function).compile(types))


def can_cache(function: Callable[..., Any]) -> bool:
    """Return whether there is a cache folder for the machine code of an entry."""
    return isinstance(cast(Any, function)._cache, _EngineCache)


def is_cached(function: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether the machine code of an entry for these argument types is on disk."""
    dispatcher = cast(Any, function)
    types = tuple(map(typeof, arguments))
    return can_cache(function) and bool(dispatcher._cache.holds(types, dispatcher.targetctx.codegen()))

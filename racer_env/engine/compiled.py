"""How the engine's functions are compiled, and where the compiled code is kept.

numba's own cache notices a change only in the file of the function it keeps, not in the files of the
functions that are compiled into it. The cache here is keyed by the source of the whole engine, so an
edited or updated engine never runs old machine code.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit, typeof
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock

Compiled = Any
"""An array or a record of one, as compiled code sees it: fields are attributes, which Python's arrays have not."""

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""`_nrt`: without memory management no array is reference-counted, which in a tick costs more than the work.
So compiled functions make no arrays."""
_INTERNAL = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Never called from Python: nothing is compiled for that."""


@cache
def source_hash() -> str:
    """A short hash of every source file of the engine."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class _EngineCache(FunctionCache):  # type: ignore[misc]
    """numba's file cache with the hash of the whole engine in its key."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), source_hash())

    def holds(self, types: tuple[Any, ...], codegen: Any) -> bool:
        return self._cache_file.load(self._index_key(types, codegen)) is not None


def part(function: Function) -> Function:
    """Compile a function that is only ever called from other compiled functions, into which it is inlined."""
    return cast(Function, njit(forceinline=True, **_INTERNAL)(function))


def shared(function: Function) -> Function:
    """As `part`, but called and not inlined: for what is large and needed in several places."""
    return cast(Function, njit(**_INTERNAL)(function))


def entry(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code on disk if possible."""
    dispatcher = njit(**_OPTIONS)(function)
    with suppress(RuntimeError):  # no folder can be written: compile in each process
        dispatcher._cache = _EngineCache(function)
    return cast(Function, dispatcher)


def bind(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The machine code of an entry for these argument types, compiled now or loaded from disk.

    It skips numba's look at the type of every argument on every call, which costs more than a car's
    tick: so it must only be called with arguments of the same types.
    """
    types = tuple(typeof(argument) for argument in arguments)
    with _straight_line_code_vectorised():
        return cast(Callable[..., Any], cast(Any, function).compile(types))


def can_keep(function: Callable[..., Any]) -> bool:
    """Whether there is a folder for the machine code of an entry."""
    return isinstance(cast(Any, function)._cache, _EngineCache)


def is_kept(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the machine code of an entry for these argument types is on disk."""
    dispatcher = cast(Any, function)
    types = tuple(map(typeof, arguments))
    return can_keep(function) and bool(dispatcher._cache.holds(types, dispatcher.targetctx.codegen()))


@contextmanager
def _straight_line_code_vectorised() -> Iterator[None]:
    """Short loops of fixed length become vector instructions, which numba leaves out unless it is told so."""
    with global_compiler_lock:
        before = config.SLP_VECTORIZE
        config.SLP_VECTORIZE = 1
        try:
            yield
        finally:
            config.SLP_VECTORIZE = before

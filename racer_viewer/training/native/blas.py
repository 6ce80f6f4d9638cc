"""Threads of numpy's matrix products."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

SET_THREADS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")
"""Names of OpenBLAS's function that sets its number of threads; numpy's own builds add a prefix and a suffix."""


@cache
def use_one_blas_thread() -> None:
    """Make every matrix product of numpy use one thread.

    OpenBLAS otherwise shares each small product among all cores and waits for them, which makes learning up to twenty
    times slower on a busy machine. `OPENBLAS_NUM_THREADS` works only if it is set before numpy is imported.
    """
    for path in _blas_libraries():
        with suppress(OSError):
            library = ctypes.CDLL(str(path))  # loaded already: the same library that numpy uses
            for name in SET_THREADS:
                if hasattr(library, name):
                    getattr(library, name)(1)


def _blas_libraries() -> Iterator[Path]:
    """Yield the OpenBLAS libraries that come with numpy; none if numpy was built with another one."""
    package = Path(np.__file__).parent
    for folder in (package.with_name("numpy.libs"), package / ".dylibs"):
        yield from folder.glob("*openblas*")

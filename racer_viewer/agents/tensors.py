"""The tensors in a torch file, without torch and without running the file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import Archive
from racer_viewer.agents.errors import AgentError, shown
from racer_viewer.agents.pickles import MAX_PICKLE_BYTES, Name, Record, Reference, read_pickle

MAX_NUMBERS = 64 * 2**20
"""In all tensors that are read from one file."""

LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""How torch files began before torch 1.6: a pickled magic number."""

STORAGES = {"torch.FloatStorage": "f4", "torch.DoubleStorage": "f8", "torch.HalfStorage": "f2"}
DICTIONARY = "collections.OrderedDict"
TENSOR = "torch._utils._rebuild_tensor_v2"
PARAMETER = "torch._utils._rebuild_parameter"
ALLOWED = frozenset((*STORAGES, DICTIONARY, TENSOR, PARAMETER))


class TensorFile:
    """The tensors of one torch file by name. A tensor is read when it is asked for, and never if it is not."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(LEGACY_START):
            raise AgentError("is in the format of torch before 1.6; load and save the model with a newer torch")
        self._archive = Archive(data)
        self._folder = _folder(self._archive)
        self._byte_order = self._read_byte_order()
        self._records = _tensor_records(self._archive.read(f"{self._folder}/data.pkl", MAX_PICKLE_BYTES))
        self._numbers_left = MAX_NUMBERS

    @property
    def names(self) -> list[str]:
        return list(self._records)

    def read(self, name: str) -> NDArray[np.float32]:
        """A copy of a tensor. All of its numbers must be finite."""
        try:
            tensor = self._view(self._records[name])
        except (TypeError, ValueError, OverflowError) as error:
            raise AgentError(f"its tensor {shown(name)} is damaged ({shown(str(error))})") from error
        numbers = np.array(tensor, np.float32, order="C")
        if not np.isfinite(numbers).all():
            raise AgentError(f"its tensor {shown(name)} holds numbers that are not finite: the training went astray")
        return numbers

    def _view(self, record: Record) -> NDArray[Any]:
        if record.name == PARAMETER:
            (record, *_) = record.arguments
        storage, offset, shape, strides, *_ = record.arguments
        numbers = self._storage(storage)
        _check_extent(len(numbers), offset, shape, strides)
        self._numbers_left -= math.prod(shape)
        if self._numbers_left < 0:
            raise AgentError(f"holds more than {MAX_NUMBERS} numbers, which is the limit")
        steps = [step * numbers.itemsize for step in strides]
        return np.lib.stride_tricks.as_strided(numbers[offset:], shape, steps, writeable=False)

    def _storage(self, reference: Reference) -> NDArray[Any]:
        if not isinstance(reference, Reference):
            raise TypeError("a tensor without a storage")
        kind, storage_type, key, _, _ = reference.identity
        if kind != "storage" or not isinstance(storage_type, Name) or not isinstance(key, str):
            raise TypeError("not a storage")
        code = STORAGES.get(storage_type.text)
        if code is None:
            raise TypeError(f"{storage_type.text} is not a storage of numbers")
        return np.frombuffer(self._archive.read(f"{self._folder}/data/{key}"), np.dtype(self._byte_order + code))

    def _read_byte_order(self) -> str:
        name = f"{self._folder}/byteorder"
        if name not in self._archive.names:
            return "<"
        order = self._archive.read(name, limit=16)
        if order not in (b"little", b"big"):
            raise AgentError(f"has the byte order {shown(str(order))}")
        return "<" if order == b"little" else ">"


def _folder(archive: Archive) -> str:
    """Every member of a torch file is in one folder, whose name says nothing."""
    folders = [name.removesuffix("/data.pkl") for name in archive.names if name.endswith("/data.pkl")]
    if len(folders) != 1:
        raise AgentError("is not a torch file: it has no data.pkl")
    return folders[0]


def _tensor_records(data: bytes) -> Mapping[str, Record]:
    content = read_pickle(data, ALLOWED)
    items = content.items if isinstance(content, Record) and content.name == DICTIONARY else content
    if not isinstance(items, dict):
        raise AgentError("is a torch file, but not of named tensors")
    for name, record in items.items():
        if not isinstance(name, str) or not isinstance(record, Record) or record.name not in (TENSOR, PARAMETER):
            raise AgentError(f"its entry {shown(name)} is not a tensor")
        if record.name == PARAMETER and not (record.arguments and isinstance(record.arguments[0], Record)):
            raise AgentError(f"its entry {shown(name)} is not a tensor")
    return items


def _check_extent(length: int, offset: Any, shape: Any, strides: Any) -> None:
    """A tensor must lie within its storage, and must not show a number twice."""
    if not isinstance(shape, tuple) or not isinstance(strides, tuple) or len(shape) != len(strides) or len(shape) > 8:
        raise ValueError("shape and strides do not fit")
    if not all(type(number) is int and number >= 0 for number in (offset, *shape, *strides)):
        raise ValueError("an offset, shape or stride that is not a number")
    count = math.prod(shape)
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) if count else 0
    if offset > length or count > length or last >= max(length, 1):
        raise ValueError("it is larger than its storage")

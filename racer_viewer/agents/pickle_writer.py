"""Pickles and torch files written without importing the classes in them: the opposite of `pickles`."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.pickles import DICTIONARY, DTYPE, TENSOR, PickledName, PickledObject, PickledReference

TORCH_PROTOCOL, PROTOCOL = 2, 3
"""Pickle protocol of torch files, and the first one that has bytes."""
ARRAY = "numpy.core.multiarray._reconstruct"
"""Constructor of arrays, by the name that numpy 1 and 2 both know."""
TORCH_STORAGES = {np.dtype(np.float32): "torch.FloatStorage", np.dtype(np.float64): "torch.DoubleStorage"}
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""Date of all zip members, so that the same content gives the same file, whatever the clock says."""


def write_pickle(value: Any, protocol: int = PROTOCOL) -> bytes:
    """Return the pickle of plain values, arrays of numbers, and the names and objects of `read_pickle`."""
    return b"".join((b"\x80", bytes([protocol]), *_encode(value), b"."))


def write_tensors(content: Any) -> bytes:
    """Return a file that `torch.load` opens; arrays of single and double precision become tensors."""
    storages: list[bytes] = []
    description = _with_tensors(content, storages)
    members = {"data.pkl": write_pickle(description, TORCH_PROTOCOL), "byteorder": b"little", "version": b"3\n"}
    members |= {f"data/{key}": storage for key, storage in enumerate(storages)}
    return write_zip({f"archive/{name}": data for name, data in members.items()}, zipfile.ZIP_STORED)


def write_zip(members: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip file of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, ZIP_DATE)
            member.compress_type, member.external_attr = compression, 0o644 << 16
            file.writestr(member, data)
    return buffer.getvalue()


def named_tensors(tensors: Mapping[str, NDArray[Any]]) -> PickledObject:
    """Return the ordered dictionary that torch saves for the tensors of a module."""
    return PickledObject(DICTIONARY, (), items=dict(tensors))


def pickled_dtype(dtype: np.dtype[Any]) -> PickledObject:
    """Return the description of a type of numbers, as numpy pickles it."""
    order = "|" if dtype.itemsize == 1 else "<"
    code = f"{dtype.kind}{dtype.itemsize}"
    return PickledObject(DTYPE, (code, False, True), state=(3, order, None, None, None, -1, -1, 0))


def _with_tensors(value: Any, storages: list[bytes]) -> Any:
    """Return a copy in which arrays are tensors; append their content to `storages`."""
    match value:
        case np.ndarray():
            key, storage = str(len(storages)), PickledName(TORCH_STORAGES[value.dtype])
            storages.append(np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes())
            reference = PickledReference(("storage", storage, key, "cpu", value.size))
            strides = tuple(math.prod(value.shape[axis + 1 :]) for axis in range(value.ndim))
            return PickledObject(TENSOR, (reference, 0, value.shape, strides, False, PickledObject(DICTIONARY, ())))
        case PickledObject():
            items = {key: _with_tensors(each, storages) for key, each in value.items.items()}
            return PickledObject(value.name, value.arguments, items, value.entries, value.state)
        case Mapping():
            return {key: _with_tensors(each, storages) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_with_tensors(each, storages) for each in value)
        case _:
            return value


def _encode(value: Any) -> Iterable[bytes]:
    """Yield the instructions that put a value on the stack."""
    match value:
        case None:
            yield b"N"
        case bool():
            yield b"\x88" if value else b"\x89"
        case int():
            yield from _encode_int(value)
        case float():
            yield b"G" + struct.pack(">d", value)
        case str():
            text = value.encode("utf-8")
            yield b"X" + struct.pack("<I", len(text)) + text
        case bytes():
            yield b"B" + struct.pack("<I", len(value)) + value
        case tuple():
            yield from _encode_group(value, b"t")
        case list():
            yield b"]"
            yield from _encode_group(value, b"e")
        case dict():
            yield b"}"
            yield from _encode_group(chain.from_iterable(value.items()), b"u")
        case np.ndarray():
            yield from _encode(_array(value))
        case PickledName():
            module, _, name = value.text.rpartition(".")
            yield f"c{module}\n{name}\n".encode()
        case PickledReference():
            yield from _encode(value.identity)
            yield b"Q"
        case PickledObject():
            yield from _encode_object(value)
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be pickled here")


def _encode_int(value: int) -> Iterable[bytes]:
    if -(2**31) <= value < 2**31:
        yield b"J" + struct.pack("<i", value)
    else:
        size = value.bit_length() // 8 + 1
        yield b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def _encode_group(values: Iterable[Any], instruction: bytes) -> Iterable[bytes]:
    """Yield a mark, the values, and the instruction that takes all values since the mark."""
    yield b"("
    for value in values:
        yield from _encode(value)
    yield instruction


def _encode_object(value: PickledObject) -> Iterable[bytes]:
    yield from _encode(PickledName(value.name))
    yield from _encode(value.arguments)
    yield b"\x81" if value.is_new else b"R"
    if value.items:
        yield from _encode_group(chain.from_iterable(value.items.items()), b"u")
    if value.entries:
        yield from _encode_group(value.entries, b"e")
    if value.state is not None:
        yield from _encode(value.state)
        yield b"b"


def _array(array: NDArray[Any]) -> PickledObject:
    """Return the description of an array, as numpy pickles it."""
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    state = (1, array.shape, pickled_dtype(array.dtype), False, content)
    return PickledObject(ARRAY, (PickledName("numpy.ndarray"), (0,), b"b"), state=state)

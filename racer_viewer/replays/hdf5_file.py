"""HDF5 files: the part of the format that data sets need, written without h5py.

Arrays are stored as they are, one after the other, while they arrive; groups and their attributes follow. Everything is
of the first version of the format that has it, so that every HDF5 library reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK_SIZE = 96
"""Size of the first block, which leads to the root group [bytes]."""
UNDEFINED = 2**64 - 1
"""Address of what a file does not have."""
MAX_LINKS = 60_000
"""Maximum number of members of a group; a header counts its messages in two bytes."""

DATASPACE, LINK_INFO, DATATYPE, FILL_VALUE, LINK, LAYOUT, GROUP_INFO, ATTRIBUTE = 1, 2, 3, 5, 6, 8, 10, 12
"""Types of the messages of an object header."""
INTEGER, FLOAT, ENUMERATION = 0, 1, 8
"""Classes of data types."""
FLOAT_LAYOUTS = {4: (23, 8, 127), 8: (52, 11, 1023)}
"""Bits of the mantissa and of the exponent, and the exponent's bias, by the size of a number [bytes]."""
FALSE_AND_TRUE = (b"FALSE", b"TRUE")
"""Names of the values of a boolean, which h5py knows them by."""


class Hdf5Writer:
    """Writes a file from its leaves to its root: arrays and groups return their address, which their group needs."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = SUPERBLOCK_SIZE
        file.write(bytes(SUPERBLOCK_SIZE))

    def array(self, values: NDArray[Any]) -> int:
        """Write an array of booleans, integers or floats; return its address."""
        values = np.asarray(values, values.dtype.newbyteorder("<"), order="C")
        data = self._append(values.tobytes())
        layout = struct.pack("<BBQQ", 3, 1, data, values.nbytes)
        return self._header(
            (DATASPACE, _dataspace(values.shape)),
            (DATATYPE, _datatype(values.dtype)),
            (FILL_VALUE, bytes((2, 2, 2, 0))),  # no value, since all space is written
            (LAYOUT, layout),
        )

    def group(self, members: Mapping[str, int], attributes: Mapping[str, np.generic] | None = None) -> int:
        """Write a group; return its address. members: addresses by name. attributes: numbers."""
        if len(members) > MAX_LINKS:
            raise ValueError(f"a group has at most {MAX_LINKS} members, not {len(members)}")
        links = [(LINK, _link(name, address)) for name, address in sorted(members.items())]
        described = [(ATTRIBUTE, _attribute(name, value)) for name, value in (attributes or {}).items()]
        no_index = struct.pack("<BBQQ", 0, 0, UNDEFINED, UNDEFINED)
        return self._header((LINK_INFO, no_index), (GROUP_INFO, bytes(2)), *links, *described)

    def finish(self, root: int) -> None:
        """Write the first block, with the address of the root group."""
        block = SIGNATURE + struct.pack("<BBBBBBBBHHI", 0, 0, 0, 0, 0, 8, 8, 0, 4, 16, 0)
        block += struct.pack("<QQQQ", 0, UNDEFINED, self._end, UNDEFINED)
        block += struct.pack("<QQII16x", 0, root, 0, 0)
        self._file.seek(0)
        self._file.write(block)

    def _header(self, *messages: tuple[int, bytes]) -> int:
        body = b"".join(
            struct.pack("<HHB3x", kind, len(padded), 0) + padded
            for kind, padded in ((k, _padded(b)) for k, b in messages)
        )
        return self._append(struct.pack("<BxHII4x", 1, len(messages), 1, len(body)) + body)

    def _append(self, data: bytes) -> int:
        address, padded = self._end, _padded(data)
        self._file.write(padded)
        self._end += len(padded)
        return address


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _dataspace(shape: tuple[int, ...]) -> bytes:
    return struct.pack("<BBB5x", 1, len(shape), 0) + struct.pack(f"<{len(shape)}Q", *shape)


def _datatype(dtype: np.dtype[Any]) -> bytes:
    if dtype.kind == "b":
        names = b"".join(_padded(name + b"\0") for name in FALSE_AND_TRUE)
        return _type_start(ENUMERATION, len(FALSE_AND_TRUE), 1) + _datatype(np.dtype("i1")) + names + bytes((0, 1))
    bits = 8 * dtype.itemsize
    if dtype.kind in "iu":
        return _type_start(INTEGER, 8 * (dtype.kind == "i"), dtype.itemsize) + struct.pack("<HH", 0, bits)
    if dtype.kind != "f":
        raise ValueError(f"arrays of {dtype} cannot be written")
    mantissa, exponent, bias = FLOAT_LAYOUTS[dtype.itemsize]
    properties = struct.pack("<HHBBBBI", 0, bits, mantissa, exponent, 0, mantissa, bias)
    return _type_start(FLOAT, 0x20 | (bits - 1) << 8, dtype.itemsize) + properties


def _type_start(kind: int, flags: int, size: int) -> bytes:
    return struct.pack("<B3sI", 1 << 4 | kind, flags.to_bytes(3, "little"), size)


def _link(name: str, address: int) -> bytes:
    encoded = name.encode()
    return struct.pack("<BBB", 1, 0, len(encoded)) + encoded + struct.pack("<Q", address)


def _attribute(name: str, value: np.generic) -> bytes:
    encoded = name.encode() + b"\0"
    kind, space = _datatype(value.dtype), _dataspace(())
    data = np.asarray(value, value.dtype.newbyteorder("<")).tobytes()
    sizes = struct.pack("<BxHHH", 1, len(encoded), len(kind), len(space))
    return sizes + _padded(encoded) + _padded(kind) + _padded(space) + data

"""Pickles read without executing them, and the numpy arrays and torch tensors in them.

A pickle is a program for a small stack machine that looks up and calls functions. This reader simulates the stack but
calls nothing: a name stays a name, and a call becomes a `PickledObject` that describes it. Python's `Unpickler`, even
with a strict `find_class`, can be made to fill the memory with ten bytes (a memo index of 2^31) or to compute for hours
(nested tuples as a key); here both are impossible.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from racer_viewer.agents.archive import AgentError, Archive, shown

MAX_PICKLE_BYTES = 16 * 2**20
MAX_INSTRUCTIONS = 200_000
"""Maximum number of instructions in a pickle, each of which may make an object; a policy has a few thousand."""

_LITERALS = frozenset(
    (
        "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
        "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
    )
)  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class PickledName:
    """Name of a class or function, as `module.name`. It is never looked up."""

    text: str


@dataclass(frozen=True, eq=False)
class PickledReference:
    """Persistent id of data stored outside the pickle."""

    identity: Any


@dataclass(eq=False)
class PickledObject:
    """Description of an object: the call that would create it, and the content that would be added.

    is_new: True if the class creates it without `__init__`; used for writing only.
    """

    name: str
    arguments: tuple[Any, ...]
    items: dict[Any, Any] = field(default_factory=dict)
    entries: list[Any] = field(default_factory=list)
    state: Any = None
    is_new: bool = False


def read_pickle(data: bytes, allowed: Container[str]) -> Any:
    """Return the content of a pickle as plain values and `PickledObject`s. Refuses names that are not in `allowed`."""
    try:
        return _Reader(allowed).read(data)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise AgentError(f"holds a pickle that is damaged or truncated ({shown(str(error))})") from error


class _Reader:
    """Simulated stack machine: a stack, a memo, and a method for every longer instruction."""

    def __init__(self, allowed: Container[str]) -> None:
        self._allowed = allowed
        self._stack: list[Any] = []
        self._outer_stacks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def read(self, data: bytes) -> Any:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(data)):
            if instruction.name == "STOP":
                break
            if count >= MAX_INSTRUCTIONS:
                raise AgentError(f"holds a pickle of more than {MAX_INSTRUCTIONS} instructions, which is the limit")
            self._follow(instruction.name, argument)
        return self._stack.pop()

    def _follow(self, instruction: str, argument: Any) -> None:
        stack = self._stack
        match instruction:
            case "PROTO" | "FRAME":
                pass
            case _ if instruction in _LITERALS:
                stack.append(argument)
            case _ if instruction in _CONSTANTS:
                stack.append(_CONSTANTS[instruction])
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "MARK":
                self._outer_stacks.append(stack)
                self._stack = []
            case "TUPLE":
                values = tuple(self._since_mark())
                self._stack.append(values)
            case _ if instruction in _TUPLES:
                stack.append(tuple(self._last(_TUPLES[instruction])))
            case "APPEND":
                self._extend(self._last(1))
            case "APPENDS":
                self._extend(self._since_mark())
            case "SETITEM":
                self._set_items(self._last(2))
            case "SETITEMS":
                self._set_items(self._since_mark())
            case "GLOBAL":
                self._push_name(*argument.split(" ", 1))
            case "STACK_GLOBAL":
                self._push_name(*self._last(2))
            case "REDUCE" | "NEWOBJ":
                self._push_record(*self._last(2))
            case "BUILD":
                self._build(stack.pop())
            case "BINPERSID":
                stack.append(PickledReference(stack.pop()))
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = stack[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(self._memo[argument])
            case _:
                raise AgentError(f"holds a pickle with the instruction {instruction}, which is not allowed there")

    def _last(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise LookupError("the stack is empty")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _since_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._outer_stacks.pop()
        return values

    def _push_name(self, module: Any, name: Any) -> None:
        text = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else ""
        if text not in self._allowed:
            raise AgentError(f"holds a pickle that needs {shown(text)}, which is not allowed there")
        self._stack.append(PickledName(text))

    def _push_record(self, name: Any, arguments: Any) -> None:
        if not isinstance(name, PickledName) or not isinstance(arguments, tuple):
            raise TypeError("a call of something that has no name")
        self._stack.append(PickledObject(name.text, arguments))

    def _build(self, state: Any) -> None:
        if not isinstance(self._stack[-1], PickledObject):
            raise TypeError("a state for something that has none")
        self._stack[-1].state = state

    def _extend(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list | PickledObject):
            raise TypeError("entries for something that is no list")
        (target.entries if isinstance(target, PickledObject) else target).extend(values)

    def _set_items(self, pairs: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict | PickledObject) or len(pairs) % 2:
            raise TypeError("items for something that is no dictionary")
        items = target.items if isinstance(target, PickledObject) else target
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not (isinstance(key, str) or (isinstance(key, int) and key.bit_length() < 64)):
                raise TypeError("a key that is neither text nor a number")
            items[key] = value


MODULES = ("numpy.core", "numpy._core")
"""Module names before numpy 2 and since."""
RECONSTRUCT = frozenset(f"{module}.multiarray._reconstruct" for module in MODULES)
SCALAR = frozenset(f"{module}.multiarray.scalar" for module in MODULES)
FROM_BUFFER = frozenset(f"{module}.numeric._frombuffer" for module in MODULES)
DTYPE = "numpy.dtype"
ALLOWED_IN_ARRAYS = frozenset((*RECONSTRUCT, *SCALAR, *FROM_BUFFER, DTYPE, "numpy.ndarray"))

NUMBERS = frozenset(("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"))
BYTE_ORDERS = ("<", ">", "|", "=")


def to_floats(value: Any) -> NDArray[np.float64]:
    """Convert a number, numpy scalar or numpy array to doubles. Raises ValueError or TypeError for anything else."""
    if isinstance(value, int | float):
        return np.array(float(value))
    if not isinstance(value, PickledObject):
        raise TypeError("not a number or an array of numbers")
    if value.name in SCALAR:
        dtype, buffer = value.arguments
        return _from_bytes(buffer, dtype, (), "C")
    if value.name in RECONSTRUCT:
        _, shape, dtype, is_fortran, buffer = value.state
        return _from_bytes(buffer, dtype, shape, "F" if is_fortran else "C")
    if value.name in FROM_BUFFER:
        buffer, dtype, shape, order = value.arguments
        return _from_bytes(buffer, dtype, shape, order)
    raise TypeError(f"{value.name} is not an array of numbers")


def _from_bytes(buffer: Any, dtype: Any, shape: Any, order: Any) -> NDArray[np.float64]:
    if not isinstance(buffer, bytes | bytearray) or order not in ("C", "F"):
        raise TypeError("an array without content")
    if not isinstance(shape, tuple) or len(shape) > 8 or not all(type(size) is int and size >= 0 for size in shape):
        raise TypeError("an array without a shape")
    numbers = np.frombuffer(buffer, _dtype(dtype))
    if numbers.size != math.prod(shape):
        raise ValueError("an array that is shorter or longer than its shape")
    return numbers.reshape(shape, order=order).astype(np.float64)


def _dtype(record: Any) -> np.dtype[Any]:
    if not isinstance(record, PickledObject) or record.name != DTYPE:
        raise TypeError("an array without a type")
    code, byte_order = record.arguments[0], record.state[1]
    if code not in NUMBERS or byte_order not in BYTE_ORDERS:
        raise TypeError("an array of something else than numbers")
    return np.dtype(f"{byte_order}{code}")


MAX_NUMBERS = 16 * 2**20
"""Maximum number of values in all tensors read from one file."""
MAX_STORAGE_BYTES = 8 * MAX_NUMBERS
"""Maximum number of bytes that are unpacked for the tensors of a file; a storage is unpacked for each of them."""

LEGACY_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"
"""First bytes of torch files before torch 1.6: a pickled magic number."""

STORAGES = {"torch.FloatStorage": "f4", "torch.DoubleStorage": "f8", "torch.HalfStorage": "f2"}
DICTIONARY = "collections.OrderedDict"
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
"""State of torch's Adam for a tensor: the number of steps, and the averages of its gradients and of their squares."""
TENSOR = "torch._utils._rebuild_tensor_v2"
PARAMETER = "torch._utils._rebuild_parameter"
ALLOWED_IN_TENSORS = frozenset((*STORAGES, DICTIONARY, TENSOR, PARAMETER))


class TorchFile:
    """Torch file: plain values, in which each tensor is a `PickledObject`. Only requested tensors are read.

    content: the values.
    """

    def __init__(self, data: bytes) -> None:
        if data.startswith(LEGACY_START):
            raise AgentError("is in the format of torch before 1.6; load and save the model with a newer torch")
        self._archive = Archive(data)
        self._folder = _folder(self._archive)
        self._byte_order = self._read_byte_order()
        self.content = read_pickle(self._archive.read(f"{self._folder}/data.pkl", MAX_PICKLE_BYTES), ALLOWED_IN_TENSORS)
        self._numbers_left, self._bytes_left = MAX_NUMBERS, MAX_STORAGE_BYTES

    def tensor(self, record: PickledObject, name: str) -> NDArray[np.float32]:
        """Return a copy of a tensor. Raises AgentError if a number is not finite."""
        if not _is_tensor(record):
            raise AgentError(f"its entry {shown(name)} is not a tensor")
        try:
            tensor = self._view(record)
        except (TypeError, ValueError, OverflowError) as error:
            raise AgentError(f"its tensor {shown(name)} is damaged ({shown(str(error))})") from error
        numbers = np.array(tensor, np.float32, order="C")
        if not np.isfinite(numbers).all():
            raise AgentError(f"its tensor {shown(name)} holds numbers that are not finite: the training diverged")
        return numbers

    def adam(self, count: int) -> list[dict[str, NDArray[np.float32]]]:
        """Return the state of torch's Adam for each of `count` tensors; nothing if it has made no step yet."""
        try:
            (group,) = self.content["param_groups"]
            numbers, entries = group["params"], _items(self.content["state"])
            if len(numbers) != count:
                raise AgentError(f"its optimiser has {len(numbers)} tensors instead of {count}")
            if not entries:
                return []
            return [{key: self._adam_value(entries[number], key) for key in ADAM_STATE} for number in numbers]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AgentError(f"its optimiser is not Adam ({shown(str(error))})") from error

    def _adam_value(self, entry: Mapping[str, Any], key: str) -> NDArray[np.float32]:
        value = entry[key]
        if isinstance(value, PickledObject):
            return self.tensor(value, key)
        number = np.array(float(value), np.float32)  # the number of steps in files of torch before 1.12
        if not np.isfinite(number):
            raise ValueError(f"{key} is not finite")
        return number

    def _view(self, record: PickledObject) -> NDArray[Any]:
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

    def _storage(self, reference: PickledReference) -> NDArray[Any]:
        if not isinstance(reference, PickledReference):
            raise TypeError("a tensor without a storage")
        kind, storage_type, key, _, _ = reference.identity
        if kind != "storage" or not isinstance(storage_type, PickledName) or not isinstance(key, str):
            raise TypeError("not a storage")
        code = STORAGES.get(storage_type.text)
        if code is None:
            raise TypeError(f"{storage_type.text} is not a storage of numbers")
        content = self._archive.read(f"{self._folder}/data/{key}")
        self._bytes_left -= len(content)
        if self._bytes_left < 0:
            raise AgentError(f"unpacks to more than {MAX_STORAGE_BYTES // 2**20} MiB, which is the limit")
        return np.frombuffer(content, np.dtype(self._byte_order + code))

    def _read_byte_order(self) -> str:
        name = f"{self._folder}/byteorder"
        if name not in self._archive.names:
            return "<"
        order = self._archive.read(name, limit=16)
        if order not in (b"little", b"big"):
            raise AgentError(f"has the byte order {shown(str(order))}")
        return "<" if order == b"little" else ">"


class TensorFile(TorchFile):
    """Tensors of a torch file by name."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._records = _tensor_records(self.content)

    @property
    def names(self) -> list[str]:
        return list(self._records)

    def read(self, name: str) -> NDArray[np.float32]:
        """Return a copy of a tensor. Raises AgentError if a number is not finite."""
        return self.tensor(self._records[name], name)


def _folder(archive: Archive) -> str:
    """Return the folder that contains all members of a torch file; its name has no meaning."""
    folders = [name.removesuffix("/data.pkl") for name in archive.names if name.endswith("/data.pkl")]
    if len(folders) != 1:
        raise AgentError("is not a torch file: it has no data.pkl")
    return folders[0]


def _items(value: Any) -> dict[Any, Any]:
    """Return the items of a dictionary, ordered or not."""
    items = value.items if isinstance(value, PickledObject) and value.name == DICTIONARY else value
    if not isinstance(items, dict):
        raise TypeError("no dictionary")
    return items


def _tensor_records(content: Any) -> Mapping[str, PickledObject]:
    try:
        items = _items(content)
    except TypeError:
        raise AgentError("is a torch file, but not of named tensors") from None
    for name, record in items.items():
        if not isinstance(name, str) or not _is_tensor(record):
            raise AgentError(f"its entry {shown(name)} is not a tensor")
    return items


def _is_tensor(record: Any) -> bool:
    if not isinstance(record, PickledObject) or record.name not in (TENSOR, PARAMETER):
        return False
    return record.name == TENSOR or bool(record.arguments and isinstance(record.arguments[0], PickledObject))


def _check_extent(length: int, offset: Any, shape: Any, strides: Any) -> None:
    """Raise ValueError unless a tensor lies within its storage and is not larger than it."""
    if not isinstance(shape, tuple) or not isinstance(strides, tuple) or len(shape) != len(strides) or len(shape) > 8:
        raise ValueError("shape and strides do not fit")
    if not all(type(number) is int and number >= 0 for number in (offset, *shape, *strides)):
        raise ValueError("an offset, shape or stride that is not a number")
    count = math.prod(shape)
    last = offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True)) if count else 0
    if offset > length or count > length or last >= max(length, 1):
        raise ValueError("it is larger than its storage")

"""Metrics of a run: a collector of named numbers, and the files they are written to after every update.

progress.csv has a row for every update, `events.out.tfevents…` is for TensorBoard. Its format is a list of records,
each with its length and checksums, of which each holds one protobuf message; neither TensorBoard nor torch is needed to
write it.
"""

from __future__ import annotations

import csv
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from racer_env.errors import os_reason
from racer_viewer.paths import atomic_write
from racer_viewer.training.run_log import RunLog

EVENTS_VERSION = b"brain.Event:2"
CRC_POLYNOMIAL = 0x82F63B78
"""Polynomial of CRC-32C, with the lowest bit first."""
CRC_MASK = 0xA282EAD8
WALL_TIME, STEP, FILE_VERSION, SUMMARY = 1, 2, 3, 5
"""Field numbers of TensorBoard's message `Event`."""
VALUE, TAG, SIMPLE_VALUE = 1, 1, 2
"""Field numbers of its messages `Summary` and `Summary.Value`."""
MAX_SINGLE = float(np.finfo(np.float32).max)
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Kinds of protobuf fields."""


class MetricsCollector:
    """Metrics since the last `take`, with the interface of stable-baselines3's Logger that callbacks use.

    name_to_value: values by name.
    """

    def __init__(self) -> None:
        self.name_to_value: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def record(self, key: str, value: Any) -> None:
        self.name_to_value[key] = value

    def record_mean(self, key: str, value: float) -> None:
        count = self._counts.get(key, 0)
        self.name_to_value[key] = (self.name_to_value.get(key, 0.0) * count + value) / (count + 1)
        self._counts[key] = count + 1

    def take(self) -> dict[str, float]:
        """Return all metrics and begin anew."""
        values, self.name_to_value, self._counts = self.name_to_value, {}, {}
        return values


class MetricsFiles:
    """Writer of a run's metrics to progress.csv, to a file for TensorBoard, and to the run log.

    A resumed run writes further files. A full disk is reported once and does not end the run.
    """

    def __init__(self, folder: Path, steps: int, log: RunLog, on_problem: Callable[[str], None]) -> None:
        self._log, self._on_problem, self._failed = log, on_problem, False
        suffix = f"_{steps}" if steps else ""
        self._table = TableFile(folder / f"progress{suffix}.csv")
        self._events = EventsFile(folder, suffix)

    def write(self, values: Mapping[str, Any], steps: int) -> None:
        """Write the metrics of an update; those that are not numbers are left out."""
        numbers = {key: float(value) for key, value in values.items() if isinstance(value, float | int | np.number)}
        for file in (self._table, self._events):
            self._try(lambda file=file: file.write(numbers, steps))  # type: ignore[misc]
        self._log.update(numbers, steps)

    def close(self) -> None:
        self._try(self._table.close)
        self._try(self._events.close)

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if not self._failed:
                self._on_problem(f"could not write metrics: {os_reason(error)}; the run continues")
            self._failed = True


class TableFile:
    """CSV file with a column for every metric; it is written anew when a metric appears for the first time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns: list[str] = []
        self._file: Any = None

    def write(self, values: Mapping[str, float], steps: int) -> None:
        new = sorted(values.keys() - set(self._columns))
        if new:
            self._add_columns(new)
        if self._file is None:
            self._file = self._path.open("a", newline="", encoding="utf-8")
        csv.writer(self._file, lineterminator="\n").writerow(values.get(name, "") for name in self._columns)
        self._file.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _add_columns(self, names: list[str]) -> None:
        self.close()
        rows = self._path.read_text(encoding="utf-8").splitlines()[1:] if self._columns else []
        self._columns += names
        with atomic_write(self._path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(self._columns)
            file.writelines(f"{row}{',' * len(names)}\n" for row in rows)


class EventsFile:
    """File of metrics for TensorBoard, created with the first metrics."""

    def __init__(self, folder: Path, suffix: str) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}{suffix}"
        self._path = folder / name
        self._file: BinaryIO | None = None

    def write(self, values: Mapping[str, float], steps: int) -> None:
        if self._file is None:
            self._file = self._path.open("ab", buffering=0)
            self._file.write(_record(_event(_field(FILE_VERSION, BYTES, EVENTS_VERSION))))
        summary = b"".join(_scalar_header(name) + _single(value) for name, value in values.items())
        self._file.write(_record(_event(_field(STEP, VARINT, _varint(steps)) + _field(SUMMARY, BYTES, summary))))

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


@cache
def _scalar_header(name: str) -> bytes:
    """Return the encoded scalar of a metric without the four bytes of its value."""
    scalar = _field(TAG, BYTES, name.encode()) + _field(SIMPLE_VALUE, FIXED_32, _single(0.0))
    return _field(VALUE, BYTES, scalar)[:-4]


def _single(value: float) -> bytes:
    return struct.pack("<f", max(min(value, MAX_SINGLE), -MAX_SINGLE))


def _event(content: bytes) -> bytes:
    return _field(WALL_TIME, FIXED_64, struct.pack("<d", time.time())) + content


def _field(number: int, kind: int, content: bytes) -> bytes:
    size = _varint(len(content)) if kind == BYTES else b""
    return _varint(number << 3 | kind) + size + content


def _varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + _checksum(length) + content + _checksum(content)


def _checksum(content: bytes) -> bytes:
    """Return the masked CRC-32C of four or more bytes.

    A checksum is the exclusive or of numbers that depend on one byte each, and on how many bytes follow it.
    """
    data = np.frombuffer(content, np.uint8).copy()
    data[:4] ^= 0xFF
    table = _crc_table(1 << len(data).bit_length())
    crc = int(np.bitwise_xor.reduce(table[np.arange(len(data) - 1, -1, -1), data])) ^ 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + CRC_MASK) & 0xFFFFFFFF)


@cache
def _crc_table(size: int) -> NDArray[np.uint32]:
    """Return the number of every byte, by how many bytes follow it: (size, 256)."""
    table = np.empty((size, 256), np.uint32)
    table[0] = np.arange(256)
    for _ in range(8):
        table[0] = table[0] >> 1 ^ np.where(table[0] & 1, np.uint32(CRC_POLYNOMIAL), np.uint32(0))
    for following in range(1, size):
        before = table[following - 1]
        table[following] = table[0, before & 0xFF] ^ before >> 8
    return table

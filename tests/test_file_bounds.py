"""Hostile files are refused within two seconds and 300 MiB, whatever they contain."""

import json
import multiprocessing
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_env.engine import load_circuit
from racer_env.engine.config import load_config
from racer_env.errors import RacerError
from racer_viewer.agents import load_agent, load_stats, models_folder
from racer_viewer.agents.pickle_writer import write_zip
from racer_viewer.training.config import load_run_config
from racer_viewer.training.run_folder import steps_of
from tests.agents.zips import pack, unpack

MAX_SECONDS, MAX_MIB = 2.0, 300.0
LOADERS: dict[str, Callable[[Path], Any]] = {
    ".zip": load_agent, ".npz": load_stats, ".pkl": load_stats, ".json": load_run_config, ".onnx": load_agent,
    ".circuit": load_circuit, ".ai-config": load_config,
}  # fmt: skip


def zeros(count: int) -> bytes:
    """Return a .npy file of doubles."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + bytes(8 * count)


def large_statistics(path: Path) -> None:
    """Write members that are not expected, and one that is far too large."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(3):
            file.writestr(f"extra{number}.npy", zeros(7_000_000))
        file.writestr("obs_mean.npy", zeros(1_000_000))


def nested_members(path: Path) -> None:
    path.write_bytes(write_zip({f"m{number}.npy": bytes(2**20) for number in range(200)}))


def many_instructions(path: Path) -> None:
    path.write_bytes(b"\x80\x02" + b"]" * (4 * 2**20 - 3) + b".")


def many_marks(path: Path) -> None:
    path.write_bytes(b"\x80\x02" + b"(" * (4 * 2**20 - 3) + b".")


def large_description(path: Path) -> None:
    members = unpack((models_folder() / "champion.zip").read_bytes())
    path.write_bytes(pack({**members, "data": b" " * (60 * 2**20) + members["data"]}, zipfile.ZIP_DEFLATED))


def wide_description(path: Path) -> None:
    members = unpack((models_folder() / "champion.zip").read_bytes())
    fields = json.loads(members["data"]) | {"x": [[] for _ in range(700_000)]}
    path.write_bytes(pack({**members, "data": json.dumps(fields, separators=(",", ":")).encode()}))


def deep_description(path: Path) -> None:
    members = unpack((models_folder() / "champion.zip").read_bytes())
    path.write_bytes(pack({**members, "data": b'{"a":' * 100_000}))


def infinite_steps(path: Path) -> None:
    members = unpack((models_folder() / "champion.zip").read_bytes())
    fields = json.loads(members["data"]) | {"num_timesteps": float("inf")}
    path.write_bytes(pack({**members, "data": json.dumps(fields).encode()}))


def large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


def deep_json(path: Path) -> None:
    path.write_bytes(b"[" * 500_000)


def not_utf8(path: Path) -> None:
    path.write_bytes(b'{"name": "\xff\xfe"}')


def large_graph(path: Path) -> None:
    path.write_bytes(b"\x3a\x04\x0a\x00\x0a\x00" * (8 * 2**20))


def folded_road(path: Path) -> None:
    """Write 1,000 control points on top of each other: each part of the road crosses all others."""
    points = [[9.0 if number % 2 else -9.0, 0.01 * number, 20.0] for number in range(1000)]
    path.write_text(json.dumps({"name": "Folded", "control_points": points}))


def many_points(path: Path) -> None:
    points = [[40.0 * np.cos(angle), 40.0 * np.sin(angle), 20.0] for angle in np.linspace(0.0, 6.0, 5000)]
    path.write_text(json.dumps({"name": "Many", "control_points": points}))


HOSTILE = [
    (".npz", large_statistics), (".npz", nested_members), (".npz", large_file), (".pkl", many_instructions),
    (".pkl", many_marks), (".pkl", large_file), (".zip", large_description), (".zip", wide_description),
    (".zip", deep_description), (".zip", large_file), (".zip", infinite_steps), (".json", deep_json),
    (".json", not_utf8), (".json", large_file), (".onnx", large_graph), (".onnx", large_file), (".onnx", deep_json),
    (".circuit", folded_road), (".circuit", many_points), (".circuit", deep_json), (".circuit", not_utf8),
    (".circuit", large_file), (".ai-config", deep_json), (".ai-config", not_utf8),
]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="measures the memory of a forked process")
@pytest.mark.parametrize(("suffix", "write"), HOSTILE, ids=lambda each: getattr(each, "__name__", each))
def test_a_hostile_file_costs_little(suffix: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / f"hostile{suffix}"
    write(path)
    seconds, mebibytes, problem = cost(LOADERS[suffix], path)
    assert problem.startswith(("refused", "loaded")), problem
    assert "\n" not in problem
    assert seconds < MAX_SECONDS
    assert mebibytes < MAX_MIB
    if suffix == ".zip":
        seconds, mebibytes, problem = cost(steps_of, path)
        assert problem.startswith(("refused", "loaded")), problem
        assert (seconds, mebibytes) < (MAX_SECONDS, MAX_MIB)


def cost(load: Callable[[Path], Any], path: Path) -> tuple[float, float, str]:
    """Load a file in a forked process; return its processor time [s], added memory [MiB], and the outcome in a line."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=measure, args=(load, path, sender))
    process.start()
    sender.close()
    seconds, mebibytes, outcome = receiver.recv()
    process.join()
    return seconds, mebibytes, outcome


def measure(load: Callable[[Path], Any], path: Path, sender: Connection) -> None:
    import resource

    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        outcome = f"loaded {type(load(path)).__name__}"
    except RacerError as error:
        outcome = f"refused: {error}"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sender.send((time.process_time() - started, used / 1024.0, outcome))


def test_the_cost_of_a_file_is_measured(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("measures the memory of a forked process")

    def load(path: Path) -> None:
        np.ones(32 * 2**20).sum()

    seconds, mebibytes, outcome = cost(load, tmp_path)
    assert seconds > 0.01
    assert mebibytes > 200.0
    assert outcome == "loaded NoneType"

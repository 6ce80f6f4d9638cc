"""Hostile files are refused within two seconds and 300 MiB, whatever they contain."""

import json
import multiprocessing
import os
import sqlite3
import struct
import sys
import time
import zipfile
from collections.abc import Callable
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_env.bridge.client import checked_track
from racer_env.bridge.messages import TrackReply, decode_reply
from racer_env.engine import circuits, load_circuit
from racer_env.engine.circuits import read_circuit
from racer_env.engine.config import load_config
from racer_env.errors import CircuitError, RacerError
from racer_viewer.agents import load_agent, load_stats, models_folder
from racer_viewer.agents.onnx_file import FLOAT, OnnxGraph, OnnxNode, OnnxPort, write_onnx
from racer_viewer.agents.pickle_writer import write_pickle, write_zip
from racer_viewer.agents.pickles import DICTIONARY, TENSOR, PickledName, PickledObject, PickledReference
from racer_viewer.circuits.draft import Draft
from racer_viewer.circuits.imports import import_circuit
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.circuits.preview import preview
from racer_viewer.replays import load_replay
from racer_viewer.replays.records import MIGRATIONS, CircuitKey, Records
from racer_viewer.replays.replay import ENGINE_VERSION
from racer_viewer.settings import Settings, SettingsFile
from racer_viewer.training.config import load_run_config
from racer_viewer.training.run_folder import steps_of
from racer_viewer.training.run_log_reader import RUN_LOG_FILE, load_history
from tests.agents.zips import pack, unpack

MAX_SECONDS, MAX_MIB = 2.0, 300.0


def load_records(path: Path) -> Any:
    records = Records(path)
    return records.circuits(), records.top(CircuitKey("track-01", "0"))


def load_log(path: Path) -> Any:
    path.replace(path.with_name(RUN_LOG_FILE))
    return load_history(path.parent)


LOADERS: dict[str, Callable[[Path], Any]] = {
    ".zip": load_agent, ".npz": load_stats, ".pkl": load_stats, ".json": load_run_config, ".onnx": load_agent,
    ".draft": lambda path: preview(Draft.from_circuit(read_circuit(path))),
    ".circuit": lambda path: load_circuit(path).tables, ".ai-config": load_config,
    ".log": load_log, ".db": lambda path: load_records(path),
    **dict.fromkeys((".svg", ".csv", ".npy"), import_circuit),
    ".track": lambda path: checked_track("x", decode_reply(path.read_bytes(), TrackReply).track),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Compile the engine here, so that no circuit is charged for it."""
    assert load_circuit("track-01").tables.beams.size
    assert preview(Draft.from_circuit(circuits()[0])).drivable


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


def shared_storage(path: Path) -> None:
    """Write 2,000 tensors that are parts of one storage of 40 MiB."""
    size = 10 * 2**20
    storage = PickledReference(("storage", PickledName("torch.FloatStorage"), "0", "cpu", size))
    tensors = {}
    for layer in range(0, 2000, 2):
        for kind, shape in (("weight", (1, 1)), ("bias", (1,))):
            view = PickledObject(TENSOR, (storage, 0, shape, (1,) * len(shape), False, PickledObject(DICTIONARY, ())))
            tensors[f"mlp_extractor.policy_net.{layer}.{kind}"] = view
    pickle = write_pickle(PickledObject(DICTIONARY, (), tensors), protocol=2)
    content = pack({"archive/data.pkl": pickle, "archive/data/0": bytes(4 * size)})
    members = unpack((models_folder() / "champion.zip").read_bytes())
    path.write_bytes(pack({**members, "policy.pth": content}))


def endless_steps(path: Path) -> None:
    members = unpack((models_folder() / "champion.zip").read_bytes())
    fields = json.loads(members["data"]) | {"num_timesteps": 10**4000}
    path.write_bytes(pack({**members, "data": json.dumps(fields).encode()}))


def tall_addend(path: Path) -> None:
    """Write a product of a small matrix to which a tall one is added: together they have 2.7 × 10^9 values."""
    constants = {"a": np.zeros((14, 30_000), np.float32), "b": np.zeros((90_000, 1), np.float32)}
    ports = OnnxPort("obs", FLOAT, (1, 14)), OnnxPort("actions", FLOAT, (1, 3))
    graph = OnnxGraph([OnnxNode("Gemm", ["obs", "a", "b"], ["actions"])], constants, ports[:1], ports[1:])
    path.write_bytes(write_onnx(graph, "tall"))


def many_operands(path: Path) -> None:
    """Write a minimum of a large constant and 190,000 small ones: 2 × 10^11 comparisons."""
    constants = {"w": np.ones((14, 3)), "large": np.ones(2**20 - 1000), "small": np.ones(1)}
    nodes = [OnnxNode("Gemm", ["obs", "w"], ["actions"]), OnnxNode("Min", ["large"] + ["small"] * 190_000, ["least"])]
    ports = OnnxPort("obs", FLOAT, (1, 14)), OnnxPort("actions", FLOAT, (1, 3))
    path.write_bytes(write_onnx(OnnxGraph(nodes, constants, ports[:1], ports[1:]), "wide"))


def long_names(path: Path) -> None:
    """Write records whose drivers have names of 8 MB; one letter of a name makes each of the others take four bytes."""
    with sqlite3.connect(path) as database:
        for statement in chain.from_iterable(MIGRATIONS):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        name = "x" * 7_900_000 + "\N{CHEQUERED FLAG}"
        for number in range(14):
            database.execute(
                "INSERT INTO record (circuit_id, fingerprint, circuit_name, driver, best_lap, laps, clean, date,"
                " engine, digest, replay, checked)"
                " VALUES ('track-01', '0', 'x', ?, 500, 1, 1, '2026-01-01', ?, ?, 'x', 1)",
                (name, ENGINE_VERSION, str(number)),
            )


def track_of_a_server(path: Path, points: int, gates: int) -> None:
    lines: dict[str, list[Any]] = {key: [] for key in ("inner", "outer", "innerRoad", "outerRoad")}
    track = {
        "id": "x", "name": "x", "length": 1.0, "start": [0, 0, 0], "gates": [[0] * 9] * gates, **lines,
        "controlPoints": [[3 * (number % 1000), 3 * (number // 1000), 5] for number in range(points)],
    }  # fmt: skip
    path.write_text(json.dumps({"type": "track_result", "track": track}))


def many_points_of_a_server(path: Path) -> None:
    track_of_a_server(path, points=250_000, gates=30)


def many_gates_of_a_server(path: Path) -> None:
    track_of_a_server(path, points=4, gates=130_000)


def restarted_log(path: Path) -> None:
    """Write a log that begins anew 100,000 times, after other events."""
    start = b'{"what":"event","steps":0,"seconds":0,"kind":"begin","text":"x"}\n'
    path.write_bytes(start.replace(b"begin", b"x") * 50_000 + start * 100_000)


def log_of_new_metrics(path: Path) -> None:
    """Write a log of 30,000 updates, after which every update has another metric."""
    line = '{{"what":"update","steps":{0},"seconds":1,"values":{{"m{1}":1}}}}\n'
    lines = [line.format(step, 0) for step in range(30_000)]
    lines += [line.format(step, step) for step in range(30_000, 30_500)]
    path.write_text("".join(lines))


def log_of_repeated_updates(path: Path) -> None:
    """Write a log of many updates, the last of which is replaced again and again."""
    line = '{{"what":"update","steps":{0},"seconds":1,"values":{{"m":1}}}}\n'
    path.write_text("".join(line.format(min(step, 150_000)) for step in range(190_000)))


def large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


def deep_json(path: Path) -> None:
    path.write_bytes(b"[" * 200_000)


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


def great_circle(path: Path) -> None:
    """Write a circle of almost the maximum length: in its middle every part of the road is equally near."""
    angles = np.linspace(0.0, 2.0 * np.pi, 1000, endpoint=False)
    points = [[3020.0 * np.cos(angle), 3020.0 * np.sin(angle), 20.0] for angle in angles]
    path.write_text(json.dumps({"name": "Great circle", "control_points": points}))


def spiral_drawing(path: Path) -> None:
    """Write a drawing of seven turns inwards and back out: hardly any road has room."""
    turns = np.linspace(0.0, 1.0, 4000)
    both = [(100.0 + 900.0 * turns + side, 14.0 * np.pi * turns) for side in (0.0, 30.0)]
    inwards, outwards = ([radii * np.cos(angles), radii * np.sin(angles)] for radii, angles in both)
    points = np.hstack([inwards, np.flip(outwards, axis=1)]).T.tolist()
    path.write_text(f'<svg><path d="M0 0{"".join(f"L{x:.2f} {y:.2f}" for x, y in points)}"/></svg>')


def many_curves(path: Path) -> None:
    path.write_text(f'<svg><path transform="{"rotate(1)" * 300_000}" d="M0 0{"T1 2" * 250_000}"/></svg>')


def blank_transform(path: Path) -> None:
    path.write_text(f'<svg><g transform="{" " * 1_000_000}"><path d="M0 0"/></g></svg>')


def default_attributes(path: Path) -> None:
    """Write a drawing that adds 3.6 MB of attributes to each of 19,000 elements."""
    declared = " ".join(f"a{number} CDATA '{'x' * 900}'" for number in range(4000))
    path.write_text(f"<!DOCTYPE svg [<!ATTLIST g {declared}>]><svg>{'<g/>' * 19_000}</svg>")


def entities(path: Path) -> None:
    declared = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10 if level else "0 " * 100}">' for level in range(9))
    path.write_text(f'<!DOCTYPE svg [{declared}]><svg><path d="&e8;"/></svg>')


def scribble(path: Path) -> None:
    np.savetxt(path, np.random.default_rng(1).normal(size=(20_000, 4)) ** 2, delimiter=",")


def short_lines(path: Path) -> None:
    path.write_text("#\n" * (2 * 2**20))


def array_of_terabytes(path: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 6), }".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())


HOSTILE = [
    (".svg", spiral_drawing), (".svg", many_curves), (".svg", entities), (".svg", large_file),
    (".svg", blank_transform), (".svg", default_attributes), (".csv", scribble),
    (".csv", short_lines), (".csv", large_file), (".npy", array_of_terabytes), (".npy", large_file),
    (".npz", large_statistics), (".npz", nested_members), (".npz", large_file), (".pkl", many_instructions),
    (".pkl", many_marks), (".pkl", large_file), (".zip", large_description), (".zip", wide_description),
    (".zip", deep_description), (".zip", large_file), (".zip", infinite_steps), (".json", deep_json),
    (".json", not_utf8), (".json", large_file), (".onnx", large_graph), (".onnx", large_file), (".onnx", deep_json),
    (".circuit", folded_road), (".draft", folded_road),
    (".circuit", many_points), (".draft", great_circle), (".circuit", deep_json), (".circuit", not_utf8),
    (".circuit", large_file), (".circuit", great_circle), (".ai-config", deep_json), (".ai-config", not_utf8),
    (".ai-config", large_file), (".zip", shared_storage), (".zip", endless_steps), (".onnx", tall_addend),
    (".log", restarted_log), (".log", log_of_new_metrics), (".log", log_of_repeated_updates), (".log", deep_json),
    (".onnx", many_operands), (".db", long_names),
    (".track", many_points_of_a_server), (".track", many_gates_of_a_server),
]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="measures the memory of a forked process")
@pytest.mark.parametrize(("suffix", "write"), HOSTILE, ids=lambda each: getattr(each, "__name__", each))
def test_a_hostile_file_costs_little(suffix: str, write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / f"hostile{suffix}"
    write(path)
    seconds, mebibytes, problem = cost(LOADERS[suffix], path)
    assert problem.startswith(("refused", "loaded")), problem
    assert "\n" not in problem
    assert len(problem) < 1000
    assert seconds < MAX_SECONDS
    assert mebibytes < MAX_MIB
    if suffix == ".zip":
        seconds, mebibytes, problem = cost(steps_of, path)
        assert problem.startswith(("refused", "loaded")), problem
        assert seconds < MAX_SECONDS
        assert mebibytes < MAX_MIB


def read_circuit_of_library(path: Path) -> None:
    folder = path.parent / "circuits"
    folder.mkdir()
    path.rename(folder / path.name)
    raise CircuitError(f"{len(CircuitLibrary(path.parent).entries())} circuits")


def read_settings(path: Path) -> None:
    path.rename(path.with_name("settings.json"))
    file = SettingsFile(path.parent)
    assert file.load() == Settings()
    raise RacerError(file.problem)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
@pytest.mark.parametrize(
    ("suffix", "load"),
    [*((suffix, load) for suffix, load in LOADERS.items() if suffix not in (".log", ".db", ".track")),
     (".settings", read_settings), (".racer", load_replay), (".draft.json", read_circuit_of_library)],
)  # fmt: skip
def test_a_pipe_in_place_of_a_file_is_refused(suffix: str, load: Callable[[Path], Any], tmp_path: Path) -> None:
    """Reading it would wait for somebody to write."""
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with pytest.raises(RacerError):
        load(path)


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

"""Formats of files: valid examples, their mutations and their readers."""

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from racer_env.engine import load_circuit
from racer_env.engine.circuits import assets_folder
from racer_env.engine.config import Config, load_config, parse_config
from racer_env.engine.quantities import QUANTITIES
from racer_env.engine.scoring import RecordedDrive, pay
from racer_env.errors import CircuitError
from racer_viewer.agents import load_agent, load_stats, models_folder, save_stats
from racer_viewer.agents.model_writer import write_vec_normalize
from racer_viewer.agents.onnx_file import FLOAT, OnnxGraph, OnnxNode, OnnxPort, write_onnx
from racer_viewer.agents.stats_files import stats_npz
from racer_viewer.circuits.draft import mirror, smooth
from racer_viewer.circuits.imports import import_circuit
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.circuits.preview import preview
from racer_viewer.circuits.strokes import fit_stroke
from racer_viewer.modes.models import LapTimeCache, ModelLaps
from racer_viewer.render.plots.figures import content_of
from racer_viewer.replays import replay_from_bytes, replay_to_bytes
from racer_viewer.replays.records import Records
from racer_viewer.run_history import SWARM_CAR, Swarm
from racer_viewer.settings import SettingsFile
from racer_viewer.training.car_feed import CAR_FEED_FILE, CarFeedReader, CarFeedWriter
from racer_viewer.training.config import load_run_config, parse_run_config, preset
from racer_viewer.training.export import export, share
from racer_viewer.training.native.learner import NativeLearner
from racer_viewer.training.policy_log import POLICIES_FILE, PolicyLayout, load_policy
from racer_viewer.training.run_folder import Checkpoint, steps_of
from racer_viewer.training.run_lock import LEARNER_FILE, read_address
from racer_viewer.training.run_log import RUN_LOG_FILE
from racer_viewer.training.run_log_reader import RunLogReader, load_history
from racer_viewer.ui.theme import ORDINARY
from tests.circuits.test_circuit_imports import FORMATS
from tests.fuzz.limited import Format
from tests.fuzz.mutations import (
    mutate_bytes,
    mutate_circuit,
    mutate_formula,
    mutate_json,
    mutate_lines,
    mutate_protobuf,
    mutate_zip,
)
from tests.replays.replay_drives import RING, ring_run

CHAMPION = models_folder() / "champion.zip"
OLD_MODELS = Path(__file__).parents[1] / "agents" / "data"


def file(suffix: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], Any]:
    """Return a reader that gets the content as a file with this suffix."""

    def read_content(data: bytes, folder: Path) -> Any:
        path = folder / f"file{suffix}"
        path.write_bytes(data)
        return read(path)

    return read_content


def models(folder: Path) -> Sequence[bytes]:
    """Return models of all kinds of policies, as several versions of stable-baselines3 wrote them, and one of ours."""
    return [CHAMPION.read_bytes(), *(path.read_bytes() for path in sorted(OLD_MODELS.glob("*.zip")))]


def all_of_model(path: Path) -> None:
    """Load a model, drive with it, read its steps and make the copy to give away."""
    agent = load_agent(path)
    agent.act(np.zeros((2, 14), np.float32))
    steps_of(path)
    share(path, path.with_name("copy.zip"))


@cache
def learner() -> NativeLearner:
    return NativeLearner(parse_run_config({"net": [3], "num_cars": 2, "n_steps": 2, "threads": 1}))


def checkpoints(folder: Path) -> Sequence[bytes]:
    """Return a model whose optimiser has made a step, and one whose optimiser has made none."""
    learner().warm_up()
    learned = learner().save(folder / "learned.zip").read_bytes()
    with closing(NativeLearner(learner().config)) as new:
        return [learned, new.save(folder / "new.zip").read_bytes()]


def resume_from(path: Path) -> None:
    learner().load(Checkpoint(path, path, learner().config, 128))


def sb3_checkpoints(folder: Path) -> Sequence[bytes]:
    """Return a model of stable-baselines3 that has learned, and a new one."""
    new = sb3_learner().save(folder / "new.zip").read_bytes()
    return [*checkpoints(folder), new]


@cache
def sb3_learner() -> Any:
    from racer_viewer.training.sb3 import SB3Learner

    return SB3Learner(learner().config)


def resume_sb3_from(path: Path) -> None:
    sb3_learner().load(Checkpoint(path, path, learner().config, 128))


def circuits(folder: Path) -> Sequence[bytes]:
    return [path.read_bytes() for path in sorted((assets_folder() / "circuits").glob("*.json"))]


def edit_own_circuit(data: bytes, folder: Path) -> None:
    """List a file in the library of own circuits, edit and preview it as the editor does, save it, and drive on it."""
    library = CircuitLibrary(folder)
    library.folder.mkdir()
    for name in ("mine.json", "other.draft.json"):
        (library.folder / name).write_bytes(data)
    for entry in library.entries():
        with suppress(CircuitError):
            seen = preview(smooth(mirror(entry.draft())))
            assert np.isfinite(seen.line).all()
            seen.nearest_arc(0.0, 0.0)
            assert seen.facts is None or seen.facts.length > 0.0
            assert library.save(seen.draft, entry.id).drivable == seen.drivable
            assert not seen.drivable or load_circuit(library.entries()[0].path).tables
            break
    shutil.rmtree(library.folder)


def strokes(folder: Path) -> Sequence[bytes]:
    """Return lines that were drawn with a mouse: a lap, one with loops, and a scribble."""
    turns = np.linspace(0.0, 2.0 * np.pi, 200)
    lap = np.column_stack([300.0 * np.cos(turns), 200.0 * np.sin(turns)])
    loops = lap + 40.0 * np.column_stack([np.cos(9.0 * turns), np.sin(9.0 * turns)])
    scribble = np.random.default_rng(1).normal(0.0, 200.0, (60, 2))
    return [line.tobytes() for line in (lap, loops, scribble)]


def fit_line_drawn(data: bytes, folder: Path) -> None:
    line = np.frombuffer(data[: len(data) // 16 * 16]).reshape(-1, 2)
    assert np.isfinite(fit_stroke([(float(x), float(y)) for x, y in line])).all()


def imports(suffix: str) -> Callable[[Path], Sequence[bytes]]:
    """Return a function that returns centrelines in the format with this ending."""
    return lambda folder: [FORMATS[suffix](load_circuit(name)) for name in ("track-01", "random:7:hard")]


def import_and_build(path: Path) -> None:
    preview(import_circuit(path))


def onnx_models(folder: Path) -> Sequence[bytes]:
    export(CHAMPION, folder)
    found = [path.read_bytes() for path in folder.glob("*.onnx")]
    for path in folder.iterdir():
        path.unlink()
    return found


def json_statistics(folder: Path) -> Sequence[bytes]:
    path = folder / "stats.json"
    save_stats(path, load_stats(CHAMPION))
    data = path.read_bytes()
    path.unlink()
    return [data]


def graphs(folder: Path) -> Sequence[bytes]:
    """Return ONNX files of every operation."""
    constants = {"w": np.eye(14, 3), "b": np.ones(3), "six": np.ones((6, 3)), "shape": np.array([1, 3]),
                 "long": np.array([1, 6])}  # fmt: skip
    ports = OnnxPort("obs", FLOAT, (1, 14)), OnnxPort("actions", FLOAT, (1, 3))

    def file(*nodes: OnnxNode) -> bytes:
        return write_onnx(OnnxGraph(nodes, constants, ports[:1], ports[1:]), "graph")

    first = OnnxNode("Gemm", ["obs", "w", "b"], ["m"])
    after = {
        **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Min", "Max"), ("m", "b")), "Clip": ("m", "b", "b"),
        **dict.fromkeys(("Tanh", "Relu", "LeakyRelu", "Elu", "Sigmoid", "Identity", "Flatten"), ("m",)),
        "Reshape": ("m", "shape"),
    }  # fmt: skip
    single = [file(first, OnnxNode(operation, inputs, ["actions"])) for operation, inputs in after.items()]
    twice = OnnxNode("Concat", ["m", "m"], ["c"]), OnnxNode("Reshape", ["c", "long"], ["r"])
    return [*onnx_models(folder), *single, file(first, *twice, OnnxNode("MatMul", ["r", "six"], ["actions"]))]


def records(folder: Path) -> Sequence[bytes]:
    path = folder / "records.db"
    found = Records(path)
    for throttle in (1.0, 0.9):
        found.enter(ring_run(throttle=throttle))
    data = path.read_bytes()
    path.unlink()
    return [data]


def all_of_records(path: Path) -> None:
    found = Records(path)
    found.circuits()
    for entry in found.top(RING):
        found.replay_of(entry)


LAYOUT = PolicyLayout(
    "ppo", "tanh", 10.0, 1e-8,
    {f"{part}.{kind}": shape for part, size in (("action_net", 3), ("value_net", 1))
     for kind, shape in (("weight", (size, 14)), ("bias", (size,)))} | {"log_std": (3,)},
)  # fmt: skip


def read_layout(data: bytes, folder: Path) -> None:
    """Load a policy by its layout, as the run log has it."""
    line = data.replace(b"\n", b" ")
    (folder / POLICIES_FILE).write_bytes(np.linspace(0.0, 1.0, LAYOUT.size, dtype="<f4").tobytes())
    (folder / RUN_LOG_FILE).write_bytes(line + b'\n{"what":"policy","steps":5,"offset":0}\n')
    reader = RunLogReader(folder)
    reader.read_all()
    for layout, steps, offset in reader.policies:
        load_policy(folder, layout, steps, offset)


def policy_records(folder: Path) -> Sequence[bytes]:
    tensors = {name: np.full(shape, 0.5, np.float32) for name, shape in LAYOUT.tensors.items()}
    return [LAYOUT.encode(tensors, np.zeros(14), np.ones(14))]


def read_policy(data: bytes, folder: Path) -> None:
    (folder / POLICIES_FILE).write_bytes(data)
    load_policy(folder, LAYOUT.to_json(), 5, 0).act(np.zeros(14, np.float32))


def car_feeds(folder: Path) -> Sequence[bytes]:
    writer = CarFeedWriter(folder, 3)
    writer.write(Swarm(1, np.zeros(3, SWARM_CAR)), 3)
    (file,) = folder.iterdir()
    data = file.read_bytes()
    writer.close()
    return [data]


def read_car_feed(data: bytes, folder: Path) -> None:
    (folder / CAR_FEED_FILE).write_bytes(data)
    with closing(CarFeedReader(folder)) as reader:
        reader.read()


def read_learner_address(data: bytes, folder: Path) -> None:
    (folder / LEARNER_FILE).write_bytes(data)
    read_address(folder)


def run_log(folder: Path) -> Sequence[bytes]:
    lines: list[dict[str, Any]] = [
        {"what": "start", "time": 1.0, "steps": 0, "seconds": 0.0},
        {"what": "update", "steps": 2048, "seconds": 1.5, "values": {"rollout/ep_rew_mean": 1.5}},
        {"what": "laps", "steps": 2048, "laps": [[8.4, 1]], "circuits": ["track-01"], "sectors": [[2.0, 3.0, 3.4]]},
        {"what": "event", "steps": 2048, "seconds": 1.5, "kind": "first lap", "text": "First lap"},
        {
            "what": "event",
            "steps": 2048,
            "seconds": 1.5,
            "kind": "weights",
            "text": "x",
            "rewards": {"weights": {"progress": 2.0}, "terms": {"own": "speed * 2"}},
        },
        {"what": "update", "steps": 4096, "seconds": 2.5, "values": {"reward/own": 1.5, "reward/progress": 0.5}},
    ]
    return [b"".join(json.dumps(line).encode() + b"\n" for line in lines)]


def read_run_log(data: bytes, folder: Path) -> None:
    (folder / RUN_LOG_FILE).write_bytes(data)
    content_of("reward", [load_history(folder)], ORDINARY)


FORMULAS = (
    "-0.05 * abs(steer_change)",
    "0.01 * (speed / 160) ** 2 if abs(heading_error) < 0.3 and not off_track else -0.01",
    "max(0, 1 - centre_distance / half_width) * clip(progress * 1000, -1, 1)",
    "(30 - last_lap_time) / 10 if lap_finished else log(wall_distance) * 1e-4",
)


def ai_configs(folder: Path) -> Sequence[bytes]:
    terms = {f"term{number}": formula for number, formula in enumerate(FORMULAS)}
    return [json.dumps({**Config().to_json(), **more}).encode() for more in ({}, {"terms": terms})]


def run_config_with_terms() -> bytes:
    return parse_run_config({"rewards": {"terms": {"own": FORMULAS[0]}}}).to_json().encode()


def replay_with_terms() -> bytes:
    return replay_to_bytes(replace(ring_run(), config=parse_config({"terms": {"own": FORMULAS[1]}})))


def pay_formula(data: bytes, folder: Path) -> None:
    """Pay a formula for states that a car can and cannot have; whatever is accepted gives finite rewards."""
    config = parse_config({"terms": {"own": data.decode("utf-8", "replace")}})
    chance = np.random.default_rng(len(data))
    rows = chance.normal(size=(8, len(QUANTITIES))) * 10.0 ** chance.uniform(-3.0, 12.0, (8, 1))
    rows[0, 0::3], rows[0, 1::3], rows[0, 2::3] = np.nan, np.inf, -np.inf
    paid = pay(RecordedDrive(rows, np.zeros((8, 6)), np.zeros(0, np.int64)), config)
    assert np.isfinite(paid).all()


FILE_FORMATS = (
    Format("circuit", circuits, mutate_json, file(".json", lambda path: load_circuit(path).tables), share=0.2),
    Format("own circuit", circuits, mutate_circuit, edit_own_circuit, share=0.2),
    Format("stroke", strokes, mutate_bytes, fit_line_drawn, share=0.1),
    *(Format(f"import {suffix}", imports(suffix), mutate_bytes, file(suffix, import_and_build), share=0.3)
      for suffix in (".csv", ".npy", ".svg")),
    Format("ai-config", ai_configs, mutate_json, file(".json", load_config)),
    Format("formula", lambda folder: [formula.encode() for formula in FORMULAS], mutate_formula, pay_formula),
    Format("run config", lambda folder: [preset("ppo").to_json().encode(), run_config_with_terms()], mutate_json,
           file(".json", load_run_config)),
    Format("settings", lambda folder: [b'{"circuit": "track-01", "name": "Anna", "window": [1280, 720]}'], mutate_json,
           file(".json", lambda path: SettingsFile(path).load())),
    Format("run log", run_log, mutate_lines, read_run_log),
    Format("model", models, mutate_zip, file(".zip", all_of_model)),
    Format("checkpoint", checkpoints, mutate_zip, file(".zip", resume_from)),
    Format("checkpoint of stable-baselines3", sb3_checkpoints, mutate_zip, file(".zip", resume_sb3_from), share=0.5),
    Format("onnx", onnx_models, mutate_bytes, file(".onnx", load_agent)),
    Format("onnx graph", graphs, mutate_protobuf, file(".onnx", lambda path: load_agent(path).act(np.zeros((3, 14)))),
           share=4.0),
    Format("statistics npz", lambda folder: [stats_npz(load_stats(CHAMPION))], mutate_zip, file(".npz", load_stats)),
    Format("statistics json", json_statistics, mutate_json, file(".json", load_stats)),
    Format("statistics pickle", lambda folder: [write_vec_normalize(load_stats(CHAMPION))], mutate_bytes,
           file(".pkl", load_stats)),
    Format("replay", lambda folder: [replay_to_bytes(ring_run()), replay_with_terms()], mutate_zip,
           lambda data, folder: replay_from_bytes(data)),
    Format("records", records, mutate_bytes, file(".db", all_of_records)),
    Format("policy layout", lambda folder: [json.dumps(LAYOUT.to_json()).encode()], mutate_json, read_layout),
    Format("policy record", policy_records, mutate_bytes, read_policy),
    Format("car feed", car_feeds, mutate_bytes, read_car_feed, allowed=(ValueError,)),
    Format("learner address", lambda folder: [b'{"pid": 123, "port": 4567, "key": "abab"}'], mutate_json,
           read_learner_address),
    Format("lap times", lambda folder: [msgspec.json.encode({"abc": ModelLaps(9.5, 8.25, True)})], mutate_json,
           file(".json", LapTimeCache)),
)  # fmt: skip

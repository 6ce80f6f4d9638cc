"""Data sets of drives for imitation and offline learning: Minari's format, and plain npz archives.

Every replay is an episode. It is simulated again, so observations, rewards and infos are those of the environment, and
a replay that this engine drives differently is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from racer_env.errors import RacerError, os_reason
from racer_viewer.paths import atomic_write, temporary_path
from racer_viewer.replays.demonstrations import demonstrated_drive
from racer_viewer.replays.hdf5_file import MAX_LINKS, Hdf5Writer
from racer_viewer.replays.replay import Replay, ReplayError
from racer_viewer.replays.trace import Trace, is_track_of, trace_replay

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.spaces import Box

MINARI_VERSION = "0.5.4"
"""Version of Minari whose format is written; its readers say which versions they understand."""
ENVIRONMENT = "Racer-v0"
PACKAGE = "racer_env"
"""Package that registers the environment."""
NAMESPACE = "racer"
DATA, METADATA, MAIN_FILE, CIRCUITS = "data", "metadata.json", "main_data.hdf5", "circuits"
"""Names in the folder of a data set."""
MAX_FILE_NAME = 40
"""Maximum length of a file name made of the name of a circuit [characters]."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RecordedEpisode:
    """A replay as an episode of the environment, with T steps.

    observations: (T + 1, 14); the last one follows the last action. actions: (T, 3), within their limits.
    terminations, truncations: true in the last step only. It terminates if the environment's rules ended the drive, and
    is truncated otherwise: the recording stops there.
    infos: values of `info` by their keys, (T + 1,), from the reset on; `putBack` marks the steps before which the
    driver was put back on the road.
    """

    replay: Replay
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: Arrays

    @property
    def steps(self) -> int:
        return len(self.actions)

    def arrays(self) -> Arrays:
        """Return the arrays by the names that Minari has for them, without the infos."""
        names = ("observations", "actions", "rewards", "terminations", "truncations")
        return {name: getattr(self, name) for name in names}


def recorded_episode(replay: Replay) -> RecordedEpisode:
    """Simulate a replay again. Raises ReplayError if the drive is not the one that was recorded."""
    trace = trace_replay(replay)
    if trace.mismatch is not None:
        raise ReplayError(f"it drives differently here: {replay.engine_warning or trace.mismatch}")
    drive = demonstrated_drive(trace)
    terminations, truncations = np.zeros(trace.ticks, np.bool_), np.zeros(trace.ticks, np.bool_)
    terminations[-1] = drive.terminated[-1]
    truncations[-1] = not terminations[-1]
    return RecordedEpisode(
        replay, drive.observations, drive.actions, drive.rewards, terminations, truncations, _infos(trace)
    )


def write_npz(replays: Sequence[tuple[Path, Replay]], target: Path) -> int:
    """Write all episodes into one npz archive of plain arrays, one after the other; return the number of steps.

    `first_steps` has the first step of each episode, and `about` the replays as JSON text.
    """
    episodes = list(_episodes(replays))
    names = [name for name in episodes[0].infos if all(name in each.infos for each in episodes)]
    arrays = {name: np.concatenate([each.arrays()[name] for each in episodes]) for name in episodes[0].arrays()}
    arrays["observations"] = np.concatenate([each.observations[:-1] for each in episodes])
    arrays["next_observations"] = np.concatenate([each.observations[1:] for each in episodes])
    arrays |= {f"infos/{name}": np.concatenate([each.infos[name][1:] for each in episodes]) for name in names}
    arrays["first_steps"] = np.cumsum([0, *(each.steps for each in episodes[:-1])])
    described = zip(episodes, circuit_references([each.replay for each in episodes]), strict=True)
    about = {"environment": ENVIRONMENT, "replays": [_description(each.replay, circuit) for each, circuit in described]}
    arrays["about"] = np.array(json.dumps(about))
    try:
        with atomic_write(target) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise RacerError(f"cannot write {target}: {os_reason(error)}") from None
    return sum(each.steps for each in episodes)


def write_minari(replays: Sequence[tuple[Path, Replay]], folder: Path) -> str:
    """Write a Minari data set, an episode for each replay; return its id. The folder must not have one already."""
    name, data = _dataset_name(folder), folder / DATA
    if data.exists():
        raise RacerError(f"{folder} has a data set already: choose another folder")
    if len(replays) > MAX_LINKS:
        raise RacerError(f"a data set has at most {MAX_LINKS} replays, not {len(replays)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_path(data) as temporary:
            temporary.mkdir()
            with (temporary / MAIN_FILE).open("wb") as file:
                steps = _write_episodes(file, replays)
            drives = [replay for _, replay in replays]
            metadata = _metadata(f"{NAMESPACE}/{name}", drives, steps, _write_circuits(drives, temporary, data))
            metadata["dataset_size"] = round((temporary / MAIN_FILE).stat().st_size / 1e6, 1)
            (temporary / METADATA).write_text(json.dumps(metadata, indent=1), encoding="utf-8")
            temporary.rename(data)
    except OSError as error:
        raise RacerError(f"cannot write {folder}: {os_reason(error)}") from None
    return f"{NAMESPACE}/{name}"


def _episodes(replays: Sequence[tuple[Path, Replay]]) -> Iterator[RecordedEpisode]:
    for path, replay in replays:
        try:
            yield recorded_episode(replay)
        except ReplayError as error:
            raise ReplayError(f"{path}: {error}") from None


def _infos(trace: Trace) -> Arrays:
    """Return the info of the reset and of every step, as `RacerEnv` has them."""
    rows, put_back = trace.rows, np.zeros(trace.ticks + 1, np.bool_)
    put_back[list(trace.replay.put_back)] = True
    components = {
        component.wire_name: rows["components"][:, number].copy()
        for number, component in enumerate(trace.replay.config.components)
    }
    components["speed"][0] = rows["speed"][0]  # in the info of a reset this key is the car's speed
    return components | {
        "tick": rows["step_count"].copy(),
        "rawSpeed": rows["speed"].copy(),
        "lap": rows["lap"].copy(),
        "checkpoint": rows["checkpoint"].copy(),
        "stepCount": rows["step_count"].copy(),
        "wallContact": rows["wall_contact"].copy(),
        "stillnessCounter": rows["stillness"].copy(),
        "putBack": put_back,
    }


def _write_episodes(file: BinaryIO, replays: Sequence[tuple[Path, Replay]]) -> int:
    """Write the episodes as Minari has them; return the number of steps."""
    writer, groups, steps = Hdf5Writer(file), {}, 0
    for number, episode in enumerate(_episodes(replays)):
        members = {name: writer.array(values) for name, values in episode.arrays().items()}
        members["infos"] = writer.group({name: writer.array(values) for name, values in episode.infos.items()})
        seed = np.uint64(episode.replay.seed)
        attributes = {"id": np.int64(number), "seed": seed, "total_steps": np.int64(episode.steps)}
        groups[f"episode_{number}"] = writer.group(members, attributes)
        steps += episode.steps
    writer.finish(writer.group(groups))
    return steps


def _metadata(dataset: str, replays: Sequence[Replay], steps: int, circuits: Mapping[str, Path]) -> dict[str, Any]:
    """Return the description of a data set. circuits: files of the circuits that have no id, by their names there."""
    observations, actions = _spaces()
    configs = {msgspec.json.encode(replay.config): replay.config for replay in replays}
    tracks = [str(circuits.get(each, each)) for each in dict.fromkeys(circuit_references(replays))]
    options: dict[str, Any] = {"track_id": tracks if len(tracks) > 1 else tracks[0]}
    if len(configs) == 1:
        options["config"] = replays[0].config.to_json()
    described = zip(replays, circuit_references(replays), strict=True)
    return {
        "dataset_id": dataset,
        "minari_version": MINARI_VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": len(replays),
        "total_steps": steps,
        "env_spec": _environment_json(options),
        "observation_space": _space_json(observations),
        "action_space": _space_json(actions),
        "author": sorted({replay.driver for replay in replays if replay.driver}),
        "algorithm_name": "recorded drives",
        "requirements": ["racer-viewer"],
        "replays": [_description(replay, circuit) for replay, circuit in described],
    }


def circuit_references(replays: Sequence[Replay]) -> list[str]:
    """Return the circuit of each replay: its id if that builds the same circuit, else the name of a file for it."""
    from racer_env.engine.circuits import named_circuit

    files: dict[object, str] = {}
    references = []
    for circuit in (replay.circuit for replay in replays):
        try:
            known = is_track_of(named_circuit(circuit.id), circuit)
        except RacerError:
            known = False
        shape = circuit.control_points, circuit.gates
        if not known and shape not in files:
            files[shape] = f"{CIRCUITS}/{plain_file_name(circuit.name)}-{len(files) + 1}.json"
        references.append(circuit.id if known else files[shape])
    return references


def _write_circuits(replays: Sequence[Replay], folder: Path, final: Path) -> dict[str, Path]:
    """Write the circuits that have no id; return the path that each will have, by its name within the data set."""
    written: dict[str, Path] = {}
    for replay, name in zip(replays, circuit_references(replays), strict=True):
        if name.startswith(f"{CIRCUITS}/") and name not in written:
            (folder / CIRCUITS).mkdir(exist_ok=True)
            (folder / name).write_bytes(msgspec.json.encode(replay.circuit))
            written[name] = final.resolve() / name
    return written


@cache
def _environment() -> gymnasium.Env[Any, Any]:
    """Return the environment, which has its spaces and its description."""
    import gymnasium

    return gymnasium.make(f"{PACKAGE}:{ENVIRONMENT}")


def _spaces() -> tuple[Box, Box]:
    """Return the observation space and the action space of the environment."""
    return cast("Box", _environment().observation_space), cast("Box", _environment().action_space)


def _environment_json(options: Mapping[str, Any]) -> str:
    """Return the environment with its arguments, as Gymnasium writes it."""
    spec = deepcopy(_environment().spec)
    assert spec is not None
    spec.kwargs = dict(options)
    return spec.to_json()


def _space_json(space: Box) -> str:
    """Return a space as Minari writes it."""
    limits = {"low": space.low.tolist(), "high": space.high.tolist()}
    return json.dumps({"type": "Box", "dtype": str(space.dtype), "shape": list(space.shape), **limits})


def _description(replay: Replay, circuit: str) -> dict[str, Any]:
    """Return what `reset` needs to start the drive again, and who drove it."""
    return {
        "driver": replay.driver,
        "date": replay.date.isoformat(),
        "circuit": circuit,
        "circuit_name": replay.circuit.name,
        "seed": replay.seed,
        "start": asdict(replay.start),
        "config": replay.config.to_json(),
        "laps": list(replay.laps),
    }


def _dataset_name(folder: Path) -> str:
    """Return the name of a data set with its version, which Minari expects to be that of its folder."""
    name = folder.resolve().name
    if re.fullmatch(r"[-\w]+-v\d+", name, re.ASCII) is None:
        better = folder.with_name(f"{plain_file_name(name)}-v0")
        raise RacerError(f"Minari needs a folder whose name ends with a version, such as {better}")
    return name


def plain_file_name(name: str) -> str:
    """Return a name of letters and digits that every system can have as a file name."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name[:MAX_FILE_NAME]).strip("-") or "drives"

"""Replay files: written replays are read back exactly, and other files are refused."""

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from racer_env.engine import Circuit, Config, Medals, Start, load_circuit, parse_config
from racer_viewer.replays import (
    ENGINE_VERSION,
    Replay,
    ReplayError,
    ReplayRecorder,
    file_name,
    load_replay,
    replay_from_bytes,
    replay_to_bytes,
    save_replay,
)
from racer_viewer.replays import replay as replay_module
from racer_viewer.replays.replay_file import FORMAT, MAX_FILE_BYTES
from tests.replays.replay_drives import RING, ring_run

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE = st.floats(allow_nan=False, allow_infinity=False, width=32)


def assert_equal(one: Replay, other: Replay) -> None:
    for name in ("circuit", "config", "start", "seed", "driver", "date", "laps", "engine_version"):
        assert getattr(one, name) == getattr(other, name), name
    assert struct.pack("d", one.reward) == struct.pack("d", other.reward)
    assert one.actions.dtype == other.actions.dtype == np.float64
    assert one.actions.tobytes() == other.actions.tobytes()


def rows(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, float, float]]]:
    return st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=40)


def texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def replays(draw: st.DrawFn) -> Replay:
    actions = np.array(draw(rows(FINITE) | rows(SINGLE) | rows(st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]))))
    points = draw(st.lists(st.tuples(*[st.floats(-1000.0, 1000.0)] * 2, st.floats(1.5, 30.0)), max_size=9))
    medals = st.builds(Medals, *[st.floats(1.0, 100.0)] * 3)
    low, high = sorted(draw(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))))
    circuit = Circuit(
        draw(texts()), tuple(points), draw(texts()), draw(st.integers(2, 1000)), draw(st.none() | medals), draw(texts())
    )
    return Replay(
        circuit,
        parse_config(
            {
                "weights": {"progress": draw(st.floats(-1e9, 1e9))},
                "episode": {"maxSteps": 7},
                "terms": draw(st.sampled_from([{}, {"own": "2 * speed"}, {"a": "1", "b": "-slip"}])),
            }
        ),
        Start(arc=(low, high)),
        draw(st.integers(0, 2**64 - 1)),
        actions,
        draw(texts().filter(str.isprintable)),
        draw(st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC))),
        (len(actions),) if draw(st.booleans()) else (),
        draw(FINITE),
        draw(st.integers(0, 2**31)),
    )


@given(replays())
@settings(deadline=None, max_examples=60)
def test_what_is_written_comes_back_to_the_bit(replay: Replay) -> None:
    data = replay_to_bytes(replay)
    again = replay_from_bytes(data)
    assert_equal(again, replay)
    assert replay_to_bytes(again) == data


@given(st.data())
@settings(deadline=None, max_examples=120)
def test_a_file_with_changed_bytes_is_the_same_or_says_so(data: st.DataObject) -> None:
    whole = bytearray(replay_to_bytes(ring_run(60)))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    assert_same_or_refused(bytes(whole))


def test_a_file_that_was_cut_off_anywhere_says_so() -> None:
    whole = replay_to_bytes(ring_run(60))
    for length in range(0, len(whole), 7):
        with pytest.raises(ReplayError):
            replay_from_bytes(whole[:length])


@given(st.binary(max_size=300))
@example(b"")
@example(b"PK")
@settings(deadline=None)
def test_any_other_bytes_are_no_replay(data: bytes) -> None:
    with pytest.raises(ReplayError):
        replay_from_bytes(data)


def assert_same_or_refused(data: bytes) -> None:
    again = read_or_refused(data)
    if again is not None:
        assert_equal(again, ring_run(60))


def read_or_refused(data: bytes) -> Replay | None:
    """Return the replay, or None if it was refused with a message in one line."""
    try:
        return replay_from_bytes(data)
    except ReplayError as error:
        message = str(error)
    assert message.isprintable()
    return None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(st.data())
@settings(deadline=None, max_examples=120)
def test_text_with_other_values_is_refused_in_one_line_or_makes_a_sound_replay(data: st.DataObject) -> None:
    about = about_of(ring_run(60))
    where = data.draw(st.sampled_from([about, about["circuit"], about["config"]["weights"], about["start"]]))
    key = data.draw(st.sampled_from(sorted(where)) | st.text(max_size=5))
    where[key] = data.draw(JSON)
    again = read_or_refused(packed(json.dumps(about).encode("utf-8", "surrogatepass")))
    if again is not None:
        assert_equal(replay_from_bytes(replay_to_bytes(again)), again)


def about_of(replay: Replay) -> dict[str, Any]:
    with np.load(io.BytesIO(replay_to_bytes(replay)), allow_pickle=False) as members:
        return json.loads(members["about"].tobytes())


def packed(about: bytes | None = None, **others: Any) -> bytes:
    """Return a replay file with changed members."""
    replay = ring_run(60)
    text = json.dumps(about_of(replay)).encode() if about is None else about
    members = {"about": np.frombuffer(text, np.uint8), "actions": replay.actions, **others}
    file = io.BytesIO()
    np.savez_compressed(file, **{name: array for name, array in members.items() if array is not None})
    return file.getvalue()


def with_about(**changes: Any) -> bytes:
    return packed(json.dumps(about_of(ring_run(60)) | changes).encode())


def test_a_file_packed_by_numpy_itself_is_read() -> None:
    assert_equal(replay_from_bytes(packed()), ring_run(60))


BAD_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "actions that are not numbers": (lambda: packed(actions=np.full((60, 3), np.nan)), "finite"),
    "actions without end": (lambda: packed(actions=np.full((60, 3), np.inf, np.float32)), "finite"),
    "no actions": (lambda: packed(actions=np.zeros((0, 3))), "1 to"),
    "actions of another shape": (lambda: packed(actions=np.zeros((60, 4))), "another kind"),
    "actions of another type": (lambda: packed(actions=np.zeros((60, 3), np.int64)), "another kind"),
    "pickled actions": (lambda: packed(actions=np.array([{}], object)), "another kind"),
    "a member too few": (lambda: packed(actions=None), "is not a replay"),
    "a member too many": (lambda: packed(more=np.zeros(3)), "is not a replay"),
    "another kind": (lambda: with_about(kind="something"), "is not a replay"),
    "a newer format": (lambda: with_about(format=FORMAT + 1, colour="red"), "newer racer-viewer"),
    "an unknown setting": (lambda: with_about(config={"weights": {"progres": 1}}), "did you mean progress"),
    "a hostile formula": (
        lambda: with_about(config={"terms": {"own": "__import__('os').system('true')"}}),
        "config.terms.own: column 12: ' is not part of a formula",
    ),
    "a formula with a wrong name": (lambda: with_about(config={"terms": {"own": "2 * sped"}}), "did you mean speed"),
    "a term with the name of a component": (lambda: with_about(config={"terms": {"wall": "1"}}), "another meaning"),
    "terms that are no formulas": (lambda: with_about(config={"terms": {"own": [1]}}), "a formula in quotes"),
    "too many terms": (lambda: with_about(config={"terms": {f"t{n}": "1" for n in range(900)}}), "at most 8 terms"),
    "a formula that is too long": (lambda: with_about(config={"terms": {"own": "1+" * 9999 + "1"}}), "300 characters"),
    "a start beyond the limits": (lambda: with_about(start={"speed": [0, 1000]}), "start speed"),
    "laps longer than the run": (lambda: with_about(laps=[61]), "lap times"),
    "a circuit without points": (lambda: with_about(circuit={"name": "x"}), "control_points"),
    "a circuit too long to build": (
        lambda: with_about(circuit={"name": "x", "control_points": [[0, 0, 9], [1e6, 0, 9], [0, 1e6, 9]]}),
        "units long",
    ),
    "a driver's name of many lines": (lambda: with_about(driver="a\nb"), "name"),
    "a date before all dates": (lambda: with_about(date="0001-01-01T00:00:00+23:00"), "date"),
    "no text": (lambda: packed(b"\xff\xfe"), "is damaged"),
    "deeply nested text": (lambda: packed(b"[" * 100_000), "is damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_cannot_be_driven_says_why_in_one_line(case: str, tmp_path: Path) -> None:
    make, reason = BAD_FILES[case]
    path = tmp_path / "bad.racer"
    path.write_bytes(make())
    with pytest.raises(ReplayError, match=reason) as error:
        load_replay(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def zip_of(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = zip_of(about=b"", actions=bytes(30 * 2**20))
    assert len(bomb) < 2**16
    with pytest.raises(ReplayError, match="packed in a way"):
        replay_from_bytes(bomb)


def test_a_bomb_that_claims_to_be_small_is_not_unpacked_any_further() -> None:
    bomb = zip_of(about=b"", actions=bytes(30 * 2**20))
    lie = bomb.replace(struct.pack("<I", 30 * 2**20), struct.pack("<I", 100))
    with pytest.raises(ReplayError, match="damaged"):
        replay_from_bytes(lie)


def test_a_header_that_claims_a_huge_array_makes_none() -> None:
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (999999999, 3), }\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    about = io.BytesIO()
    np.save(about, np.frombuffer(json.dumps(about_of(ring_run(60))).encode(), np.uint8))
    with pytest.raises(ReplayError, match="shorter or longer"):
        replay_from_bytes(zip_of(about=about.getvalue(), actions=header + bytes(24)))


def test_a_file_larger_than_any_replay_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.racer"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES * 50)
    with pytest.raises(ReplayError, match="larger than"):
        load_replay(path)


def test_a_folder_or_nothing_is_no_replay(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="folder"):
        load_replay(tmp_path)
    with pytest.raises(ReplayError, match="no such file"):
        load_replay(tmp_path / "missing.racer")


def test_a_file_of_another_engine_version_is_read_and_names_both_versions(tmp_path: Path) -> None:
    save_replay(replace(ring_run(60), engine_version=ENGINE_VERSION + 6), tmp_path / "other.racer")
    other = load_replay(tmp_path / "other.racer")
    assert other.engine_warning is not None
    assert f"version {ENGINE_VERSION + 6}" in other.engine_warning
    assert f"version {ENGINE_VERSION}:" in other.engine_warning
    assert ring_run(60).engine_warning is None


def test_a_saved_file_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "run.racer"
    save_replay(ring_run(60), path)
    save_replay(ring_run(90), path)
    assert load_replay(path).ticks == 90
    assert os.listdir(path.parent) == ["run.racer"]


def test_a_path_that_cannot_be_written_is_a_replay_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReplayError, match="cannot write"):
        save_replay(ring_run(60), tmp_path / "file" / "run.racer")


def test_a_minute_of_driving_is_small_even_if_every_action_is_noise() -> None:
    noise = np.random.default_rng(1).uniform(-1.0, 1.0, (3600, 3))
    replay = replace(ring_run(60), actions=noise)
    assert len(replay_to_bytes(replay)) < 90_000
    assert len(replay_to_bytes(replace(replay, actions=noise.astype(np.float32)))) < 45_000


def test_an_hour_at_rest_can_be_kept() -> None:
    still = replace(ring_run(60), actions=np.zeros((216_000, 3)))
    assert replay_from_bytes(replay_to_bytes(still)).ticks == 216_000


def test_a_name_for_the_file_has_nothing_that_a_system_refuses() -> None:
    circuit = msgspec.structs.replace(RING, id='random:12/hard\\"?*')
    replay = replace(ring_run(60), circuit=circuit, driver="Zoë | <b>")
    assert file_name(replay) == "random-12-hard--Zoë-b--20260102-030405.racer"
    long = replace(ring_run(60), circuit=msgspec.structs.replace(RING, id="Ω" * 500))
    assert len(file_name(long).encode()) < 255


def test_a_recorder_keeps_actions_exactly_as_they_are_stepped() -> None:
    recorder = ReplayRecorder(RING, Config(), Start(), driver="a\nb" + "x" * 100)
    recorder.add(np.array([0.1, 0.2, 0.3], np.float32), 1.0)
    recorder.add((0.1, 1, False), 0.5, 2)
    replay = recorder.replay()
    assert replay.actions.tolist() == [np.array([0.1, 0.2, 0.3], np.float32).tolist(), [0.1, 1.0, 0.0]]
    assert (replay.laps, replay.reward) == ((2,), 1.5)
    assert replay.driver == "a?b" + "x" * 61
    recorder.add((0.0, 0.0, 0.0), 0.0)
    assert (replay.ticks, recorder.replay().ticks) == (2, 3)


def test_a_recorder_grows_and_stops_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "MAX_TICKS", 10_000)
    recorder = ReplayRecorder(RING, Config(), Start())
    for tick in range(10_100):
        recorder.add((tick / 1e6, 0.0, 0.0), 1.0)
    replay = recorder.replay()
    assert recorder.full
    assert replay.reward == 10_000.0
    assert np.array_equal(replay.actions[:, 0], np.arange(10_000) / 1e6)


def test_a_recorder_that_saw_nothing_makes_no_replay() -> None:
    with pytest.raises(ReplayError, match="1 to"):
        ReplayRecorder(RING, Config(), Start()).replay()


def test_a_replay_with_terms_is_of_a_format_that_older_versions_refuse_by_its_number() -> None:
    plain, own = ring_run(60), replace(ring_run(60), config=parse_config({"terms": {"own": "speed"}}))
    assert about_of(plain)["format"] == 1
    assert "terms" not in about_of(plain)["config"]
    assert about_of(own)["format"] == FORMAT == 3
    assert replay_from_bytes(replay_to_bytes(own)).config.formulas == {"own": "speed"}


def test_the_actions_of_a_replay_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        ring_run(60).actions[0, 0] = 1.0


def test_a_date_is_kept_in_universal_time() -> None:
    there = datetime(2026, 1, 2, 5, tzinfo=timezone(timedelta(hours=2)))
    assert replace(ring_run(60), date=there).date.isoformat() == "2026-01-02T03:00:00+00:00"


@pytest.mark.parametrize("name", ["track-04", "random:7:hard"])
def test_circuits_come_back_whole(name: str) -> None:
    circuit = load_circuit(name).circuit
    assert circuit is not None
    again = replay_from_bytes(replay_to_bytes(replace(ring_run(60), circuit=circuit)))
    assert again.circuit == circuit
    assert asdict(again.start) == asdict(Start())


def test_importing_replays_and_records_loads_no_engine_and_no_window() -> None:
    code = (
        "import sys, racer_viewer.replays.records, racer_viewer.replays\n"
        "print(*{name.split('.')[0] for name in sys.modules} & {'numba', 'pygame', 'torch', 'rich'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

"""Reward lab: reference drives are what they are called, and rewards that prefer bad drives are found out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from racer_env.engine import Config, load_circuit, parse_config
from racer_env.engine.scoring import pay, total
from racer_viewer.bench.rewards import measure
from racer_viewer.cli import main
from racer_viewer.replays import save_replay
from racer_viewer.training.config import PAID_UNITS
from racer_viewer.training.reward_lab import (
    CHAMPION,
    CIRCLES,
    CLEAN,
    CRASH,
    CUTTER,
    NAMES,
    QUALITY,
    SLOW,
    STANDSTILL,
    ZIGZAG,
    LabDrive,
    LabReport,
    main_warnings,
    paid_on,
    reference_drives,
    score_reward,
)
from tests.replays.replay_drives import ring_run

TRACK = load_circuit("track-01")


@pytest.fixture(scope="module")
def drives() -> dict[str, LabDrive]:
    return {each.kind: each for each in reference_drives(TRACK)}


def report(drives: dict[str, LabDrive], content: Any) -> LabReport:
    return score_reward(parse_config(content), [*drives.values()])


def pairs(found: LabReport) -> set[tuple[str, str]]:
    return {(each.worse.kind, each.better.kind) for each in found.warnings}


def test_every_kind_has_a_name_and_a_quality(drives: dict[str, LabDrive]) -> None:
    assert NAMES.keys() == QUALITY.keys()
    assert {*drives} == {CHAMPION, CLEAN, SLOW, ZIGZAG, CUTTER, CRASH, CIRCLES, STANDSTILL}


def test_the_drives_are_what_they_are_called(drives: dict[str, LabDrive]) -> None:
    columns = {kind: {name: each.drive.column(name) for name in ("off_track", "wall_contact", "speed", "progress",
                                                                 "last_lap_time", "steer_change")}
               for kind, each in drives.items()}  # fmt: skip
    for kind in (CHAMPION, CLEAN, SLOW, ZIGZAG):
        assert not columns[kind]["off_track"].any(), kind
        assert not columns[kind]["wall_contact"].any(), kind
        assert columns[kind]["progress"].sum() > 1.0, kind
    lap = {kind: columns[kind]["last_lap_time"].max() for kind in (CHAMPION, CLEAN, SLOW, CUTTER)}
    assert lap[CHAMPION] < lap[CLEAN] < lap[SLOW] / 2
    assert lap[CUTTER] < lap[CLEAN]
    assert columns[CUTTER]["off_track"].mean() > 0.05
    assert columns[CRASH]["wall_contact"].mean() > 0.5
    assert abs(columns[CIRCLES]["progress"].sum()) < 0.2
    assert columns[STANDSTILL]["speed"].max() == 0.0
    assert np.abs(columns[ZIGZAG]["steer_change"]).sum() > 1.5 * np.abs(columns[CLEAN]["steer_change"]).sum()


def test_the_default_rewards_pay_more_for_cutting_corners_and_for_nothing_worse(drives: dict[str, LabDrive]) -> None:
    assert pairs(report(drives, {})) == {(CUTTER, CLEAN), (CUTTER, ZIGZAG), (CUTTER, SLOW)}


def test_a_reward_that_pays_nothing_for_progress_prefers_to_stand(drives: dict[str, LabDrive]) -> None:
    found = report(drives, {"weights": {"progress": 0.0, "stillnessPenalty": 0.0}, "terms": {"hurry": "-0.01"}})
    assert found.scores[0].kind == STANDSTILL
    assert found.scores[0].ended
    assert {(STANDSTILL, CHAMPION), (STANDSTILL, CLEAN)} <= pairs(found)
    assert str(main_warnings(found)[0]).startswith("standing still earns more than the champion's lap: ")


def test_a_reward_for_speed_alone_is_earned_in_circles(drives: dict[str, LabDrive]) -> None:
    weights = {"progress": 0.0, "speedBonus": 0.01, "offTrackPenalty": 0.0, "wallPenalty": 0.0}
    assert (CIRCLES, SLOW) in pairs(report(drives, {"weights": weights}))


def test_a_harsh_reward_ranks_the_drives_as_they_are(drives: dict[str, LabDrive]) -> None:
    weights = {"progress": 1.0, "offTrackPenalty": -0.02, "wallPenalty": -0.05}
    found = report(drives, {"weights": weights, "terms": {"calm": "-0.0005 * abs(steer_change)"}})
    assert found.warnings == ()
    assert [each.kind for each in found.scores][:2] == [CHAMPION, CLEAN]


def test_an_episode_is_the_drive_going_on_or_ending_by_standing_still(drives: dict[str, LabDrive]) -> None:
    config = parse_config({"episode": {"maxSteps": 500, "stillnessTimeoutTicks": 60}})
    by_kind = {each.kind: each for each in score_reward(config, [*drives.values()]).scores}
    clean = total(pay(drives[CLEAN].drive.part(0, 500), config))
    assert by_kind[CLEAN].episode == pytest.approx(clean.sum())
    assert by_kind[CLEAN].per_second == pytest.approx(clean.mean() * 60.0)
    assert by_kind[CLEAN].per_lap == pytest.approx(1.0, rel=0.01)
    assert by_kind[STANDSTILL].episode == pytest.approx(-0.001 * 60)
    assert np.isnan(by_kind[STANDSTILL].per_lap)
    longer = {each.kind: each for each in score_reward(parse_config({"episode": {"maxSteps": 10**6}}),
                                                       [*drives.values()]).scores}  # fmt: skip
    assert longer[CLEAN].episode == pytest.approx(longer[CLEAN].per_second / 60.0 * 10**6)


def test_progress_in_units_is_paid_by_the_length_of_the_circuit() -> None:
    paid = paid_on(Config(), TRACK, True)
    assert paid.weights.progress == pytest.approx(TRACK.length / PAID_UNITS)
    assert paid_on(Config(), TRACK, False) == Config()


def test_the_command_prints_ranking_and_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reward.json"
    path.write_text(json.dumps({"weights": {"progress": 0.0, "stillnessPenalty": 0.0}, "terms": {"hurry": "-0.01"}}))
    assert main(["rewards", "--config", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["ranking"][0]["kind"] == STANDSTILL
    assert printed["ranking"][0]["components_per_second"]["hurry"] == pytest.approx(-0.6)
    assert printed["warnings"][0]["text"].startswith("standing still earns more than")
    assert main(["rewards", "--config", str(path)]) == 0
    assert "Warning: standing still earns more than the champion's lap" in capsys.readouterr().out.replace("\n", " ")


def test_a_replay_is_scored_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay, path = ring_run(), tmp_path / "mine.racer"
    save_replay(replay, path)
    assert main(["rewards", str(path)]) == 2
    assert "was recorded on Ring: choose that circuit with --track" in capsys.readouterr().err
    circuit = tmp_path / "ring.json"
    points = [list(point) for point in replay.circuit.control_points]
    circuit.write_text(json.dumps({"name": "Ring", "control_points": points, "gates": replay.circuit.gates}))
    assert main(["rewards", "--track", str(circuit), "--json", str(path)]) == 0
    own = next(each for each in json.loads(capsys.readouterr().out)["ranking"] if each["kind"] == "person")
    assert own["name"] == "Anna"
    assert own["per_second"] == pytest.approx(replay.reward / replay.ticks * 60.0)


def test_a_wrong_formula_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reward.json"
    path.write_text(json.dumps({"terms": {"own": "speed +"}}))
    assert main(["rewards", "--config", str(path)]) == 2
    assert "config.terms.own: column 8: " in capsys.readouterr().err


def test_the_benchmark_measures_both_parts() -> None:
    found = measure(rounds=1, ticks=2000)
    assert found.ticks == 2000
    assert found.together.value == pytest.approx(found.simulation_seconds + found.scores_seconds)

"""Runs whose circuit is edited while they learn, and the circuits that a run keeps in its folder."""

from dataclasses import replace
from pathlib import Path

import pytest

from racer_env.engine import Circuit, circuit_name, circuits, load_circuit
from racer_env.errors import CircuitError, RacerError
from racer_viewer.circuits.draft import Draft, Point, move_points, scale, set_text
from racer_viewer.circuits.library import CircuitLibrary, write_circuit
from racer_viewer.training.config import RunConfig, load_run_config
from racer_viewer.training.learner import Callback
from racer_viewer.training.metrics import DrivingStats
from racer_viewer.training.run import Run
from racer_viewer.training.run_folder import keep_files, store_circuit, write_config
from racer_viewer.training.run_log_reader import load_history
from racer_viewer.training.run_monitor import RunMonitor
from tests.processes import wait_for
from tests.training.monitor.learners import LAPPING, config, event_kinds, wait_until_learning

MINE = set_text(Draft.from_circuit(circuits()[0]), name="Mine")
LONGER = set_text(scale(MINE, 1.3), name="Longer")
CROSSED = Circuit("Knot", tuple((float(x), float(y), 20.0) for x, y in ((0, 0), (300, 300), (300, 0), (0, 300))))


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return CircuitLibrary(tmp_path).save(MINE).path


class Editor(Callback):
    """Changes the circuit of a run after some laps, and ends the run after some laps on the new one."""

    def __init__(self, run: Run, *circuits: Circuit, laps: int = 12) -> None:
        self._run, self._circuits, self._laps = run, list(circuits), laps
        self.seen = [0]
        """Number of laps on each circuit."""

    def on_step(self, stats: DrivingStats) -> bool:
        self.seen[-1] += len(stats.laps)
        if self.seen[-1] >= self._laps:
            if not self._circuits:
                return False
            self._run.set_circuit(self._circuits.pop(0))
            self.seen.append(0)
        return True


@pytest.mark.parametrize("engine", ["native", "sb3"])
def test_cars_move_to_the_new_circuit_and_everything_knows_it(tmp_path: Path, own: Path, engine: str) -> None:
    run = Run(config(LAPPING, tracks=[str(own)], engine=engine), tmp_path / "runs")
    editor = Editor(run, LONGER.to_circuit("mine"))
    result = run.learn(callbacks=[editor])
    assert len(editor.seen) == 2

    history = load_history(run.folder)
    flags = [event for event in history.events if event.kind == "circuit"]
    assert [flag.text for flag in flags] == [f"Longer: {load_circuit(LONGER.to_circuit()).length:.0f} units"]
    [name] = history.circuits
    assert (circuit_name(name), Path(name).stem) == ("Longer", "mine")
    assert load_circuit(name).circuit == LONGER.to_circuit("mine")
    laps = history.laps_on(name)
    assert len(laps) == editor.seen[1] < len(history.laps)
    assert laps[:, 0].min() > flags[0].steps
    assert history.best_lap(name) > 1.1 * history.laps[:, 1].min(), "laps on the old circuit no longer count"
    assert run.metrics.best_lap == pytest.approx(history.best_lap(name), abs=1e-3)

    resumed = Run.in_folder(result.folder)
    assert resumed.tracks[0].circuit == LONGER.to_circuit("mine")
    assert resumed.config.tracks == run.config.tracks == (name,)


def test_a_circuit_is_changed_several_times_and_evaluated(tmp_path: Path, own: Path) -> None:
    run = Run(config(LAPPING, tracks=[str(own)], evaluate_every=4000), tmp_path / "runs")
    shorter = scale(MINE, 0.9)
    editor = Editor(run, LONGER.to_circuit("mine"), shorter.to_circuit("mine"))
    result = run.learn(callbacks=[editor])
    history = load_history(run.folder)
    assert [event.kind for event in history.events].count("circuit") == 2
    last = [event.steps for event in history.events if event.kind == "circuit"][-1]
    assert any(event.kind == "best" and event.steps > last for event in history.events), "a new best on the new circuit"
    assert result.best is not None
    assert load_circuit(run.config.tracks[0]).circuit == shorter.to_circuit("mine")
    assert len({*(run.folder / "circuits").rglob("mine.json")}) == 3


def test_only_one_of_several_circuits_is_changed(tmp_path: Path, own: Path) -> None:
    tracks = ["track-01", str(own), "track-01"]
    run = Run(config(LAPPING, tracks=tracks, starts="anywhere"), tmp_path / "runs")
    editor = Editor(run, LONGER.to_circuit("mine"), laps=40)
    run.learn(callbacks=[editor])
    history = load_history(run.folder)
    assert history.circuits[0] != "track-01", "number 0 was changed, wherever it is in the list"
    assert run.config.tracks == (history.circuits[0], history.circuits[1], history.circuits[0])
    first, second = (history.laps_on(name) for name in history.circuits)
    assert len(first) < editor.seen[0]
    assert len(second) > editor.seen[1] / 4
    assert load_circuit(history.circuits[1]).circuit == MINE.to_circuit("mine")


def test_a_circuit_that_cannot_be_driven_changes_nothing(tmp_path: Path, own: Path) -> None:
    problems = []

    class Check(Callback):
        def on_step(self, stats: DrivingStats) -> bool:
            for circuit, number in ((CROSSED, 0), (LONGER.to_circuit(), 1), (LONGER.to_circuit(), -1)):
                with pytest.raises(RacerError) as error:
                    run.set_circuit(circuit, number)
                problems.append(str(error.value))
            run.set_circuit(replace(MINE, description="Other words, same circuit").to_circuit())
            return False

    run = Run(config(LAPPING, tracks=[str(own)]), tmp_path / "runs")
    run.learn(callbacks=[Check()])
    assert ["cross" in problems[0], *problems[1:]] == [True, "the run has no circuit number 1",
                                                       "the run has no circuit number -1"]  # fmt: skip
    assert "circuit" not in [event.kind for event in load_history(run.folder).events]
    assert load_circuit(run.config.tracks[0]).circuit == MINE.to_circuit("mine")


def test_a_run_keeps_its_circuits_when_they_are_edited_deleted_or_the_run_is_moved(tmp_path: Path, own: Path) -> None:
    folder = tmp_path / "runs" / "mine-1"
    plain = RunConfig(name="mine-1", tracks=("track-02", str(own), "random:3", str(own)))
    kept = keep_files(plain, folder)
    write_config(kept, folder)
    assert keep_files(kept, folder) == kept
    assert kept.tracks[1] == kept.tracks[3] == str((folder / "circuits" / "mine.json").absolute())
    own.unlink()
    moved = folder.rename(tmp_path / "elsewhere")
    config = load_run_config(moved / "config.json")
    assert config.tracks[0::2] == ("track-02", "random:3")
    assert load_circuit(config.tracks[1]).circuit == MINE.to_circuit("mine")
    assert str(tmp_path) not in (moved / "config.json").read_text()


def test_circuits_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    for number, draft in enumerate((MINE, LONGER)):
        write_circuit(draft.to_circuit(), tmp_path / str(number) / "same.json")
    kept = keep_files(RunConfig(tracks=tuple(str(tmp_path / each / "same.json") for each in "01")), tmp_path / "run")
    assert [load_circuit(name).circuit.name for name in kept.tracks] == ["Mine", "Longer"]


def test_names_that_lead_out_of_a_run_are_names_of_other_circuits(tmp_path: Path, own: Path) -> None:
    for name in (
        "./circuits/../../x.json",
        "./circuits/a/b.json",
        "./x.json",
        "./circuits/..",
        "./circuits/1/../y.json",
    ):
        config = replace(RunConfig(), tracks=(name,))
        (tmp_path / "config.json").write_text(config.to_json())
        assert load_run_config(tmp_path / "config.json").tracks == (name,)


def test_versions_have_plain_names(tmp_path: Path) -> None:
    names = [store_circuit(MINE.to_circuit(text), tmp_path) for text in ("mine", "../../evil", "", "a/b\\c", "x" * 300)]
    assert [Path(name).relative_to(tmp_path).as_posix() for name in names] == [
        "circuits/1/mine.json", "circuits/2/evil.json", "circuits/3/circuit.json", "circuits/4/a-b-c.json",
        f"circuits/5/{'x' * 60}.json",
    ]  # fmt: skip


def test_a_window_trains_on_a_drawing_and_edits_it(tmp_path: Path) -> None:
    """A learner process of its own: the circuit is saved nowhere but in the run's folder."""
    run = RunMonitor.start(config(LAPPING), tmp_path, circuit=MINE.to_circuit())
    try:
        wait_until_learning(run)
        wait_for(lambda: len(run.history.laps) > 5)
        first = run.config.tracks
        assert load_circuit(first[0]).circuit.name == "Mine"
        run.set_circuit(CROSSED)
        wait_for(lambda: "problem" in event_kinds(run))
        assert "cross" in run.history.events[-1].text
        run.set_circuit(LONGER.to_circuit())
        wait_for(lambda: "circuit" in event_kinds(run))
        wait_for(lambda: run.config.tracks != first)
        assert run.history.circuits == run.config.circuits
        assert load_circuit(run.config.tracks[0]).circuit.name == "Longer"
        wait_for(lambda: len(run.history.laps_on(run.config.tracks[0])) > 5)
        wait_for(lambda: run.swarm() is not None and set(run.swarm().cars["track"].tolist()) == {0})
        with pytest.raises(CircuitError, match="too many control points"):
            run.set_circuit(Draft("Big", points=tuple(Point(i + 0.123, 0.1, 9.0) for i in range(20_000))).to_circuit())
    finally:
        run.stop()
        wait_for(lambda: run.state in ("stopped", "finished", "failed"))
    assert run.state == "stopped", run.problem
    again = RunMonitor.attach(run.folder)
    assert again.config.tracks == run.config.tracks
    assert len(again.history.laps_on(again.config.tracks[0])) < len(again.history.laps)


def test_the_circuit_of_moved_points_is_another_one(tmp_path: Path, own: Path) -> None:
    """Check that a small edit counts: one point, one unit."""
    run = Run(config(LAPPING, tracks=[str(own)]), tmp_path / "runs")
    run.learn(callbacks=[Editor(run, move_points(MINE, [3], 1.0, 0.0).to_circuit("mine"), laps=1)])
    assert len(list((run.folder / "circuits").rglob("*.json"))) == 2

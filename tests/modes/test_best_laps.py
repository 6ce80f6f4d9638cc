"""The fastest lap of all cars, and the laps of the best policy are listed separately."""

from dataclasses import replace

import numpy as np

from racer_viewer.modes.train.end import TrainEndScreen
from racer_viewer.modes.train.panels import status_words
from racer_viewer.modes.train.run_facts import best_policy, fastest_laps, lap_words
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.run_history import RunEvent, RunHistory
from tests.modes.person import Person
from tests.modes.run_folders import make_logged_run

LAPS = np.array([[100.0, 6.5], [200.0, 12.25], [300.0, 12.0]])
ONE = RunHistory(laps=LAPS, circuits=("track-01",), lap_circuits=np.zeros(3))
MANY = replace(ONE, circuits=("track-01", "track-02", "track-03"), lap_circuits=np.array([0.0, 1.0, 1.0]))


def found_best(curves: RunHistory, steps: int) -> RunHistory:
    return replace(curves, events=(RunEvent(steps, 1.0, "best", "New best"), RunEvent(300, 2.0, "checkpoint", "Saved")))


def test_a_lap_is_the_fastest_of_its_circuit_only() -> None:
    assert lap_words(ONE, "track-01") == "fastest lap 6.50 s"
    assert lap_words(MANY, "track-02") == "fastest lap 12.00 s on Speedway"
    assert lap_words(MANY, "track-03") == "no lap on Gauntlet yet, laps on 2 of 3 circuits"
    assert fastest_laps(MANY) == "fastest laps 6.50 s on Meadow Ring, 12.00 s on Speedway"
    assert fastest_laps(RunHistory()) == best_policy(RunHistory()) == best_policy(ONE) == ""


def test_the_best_policy_has_the_laps_of_the_moment_when_it_was_found() -> None:
    assert lap_words(found_best(ONE, 200), "track-01") == "fastest lap 6.50 s, best policy 12.25 s"
    assert best_policy(found_best(ONE, 200)) == "best policy after 200 steps: 12.25 s"
    many = found_best(MANY, 200)
    assert lap_words(many, "track-01") == "fastest lap 6.50 s on Meadow Ring"
    assert best_policy(many) == "best policy after 200 steps: 12.25 s on Speedway"
    assert best_policy(found_best(ONE, 250)) == "best policy after 250 steps"


def test_what_the_learner_logged_counts_more_than_a_car_that_lapped_in_the_same_tick() -> None:
    values = {"eval/lap_track-01": np.array([np.nan, 7.0, 6.25])}
    logged = replace(found_best(ONE, 200), steps=np.array([100.0, 200.0, 300.0]), values=values)
    assert lap_words(logged, "track-01") == "fastest lap 6.50 s, best policy 7.00 s"


def test_a_faster_lap_of_another_policy_is_not_taken_for_that_of_the_one_that_is_raced(person: Person) -> None:
    lines = [
        {"what": "event", "steps": 0, "seconds": 0.0, "kind": "begin", "text": "", "circuits": ["track-01"]},
        {"what": "laps", "laps": [[100_000, 7.25, 0]], "sectors": []},
        {"what": "event", "steps": 100_000, "seconds": 1.0, "kind": "best", "text": "New best: track-01 7.25 s"},
        {"what": "laps", "laps": [[150_000, 6.5, 0]], "sectors": []},
    ]
    folder = make_logged_run(person.data, "told", lines)
    open_run(person.app.context, folder)
    train = person.until_top(TrainScreen)
    assert "fastest lap 6.50 s, best policy 7.25 s" in [words for words, _ in status_words(train)]
    end = TrainEndScreen(person.app.context, train)
    assert "best policy after 100k steps: 7.25 s; fastest lap 6.50 s" in end.content.subtitle
    assert end.list.items[0].hint == "You against its best policy, after 100k steps"
    person.app.context.pop()
    runs = RunsScreen(person.app.context)
    person.app.context.push(runs)
    person.until(lambda: runs.list.items[0].label == "told", "the list")
    assert runs.list.items[0].cells[3] == "6.50"  # type: ignore[attr-defined]
    assert runs.list.items[0].hint == "best policy after 100k steps: 7.25 s"

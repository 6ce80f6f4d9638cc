"""Races in the real window: track limits, the starting grid, positions and gaps, medals, ghosts and results."""

from pathlib import Path

import numpy as np
import pygame
import pytest

from racer_env.engine import circuits, load_circuit
from racer_viewer.agents import bundled_models, load_agent
from racer_viewer.agents.load import bundled_authors
from racer_viewer.app.menu import MenuScreen
from racer_viewer.modes.choose import OpponentsScreen
from racer_viewer.modes.film_screen import FilmScreen
from racer_viewer.modes.ladder import MARGINS, agent_drive, medal_ghost, medals_for, take_measured_laps
from racer_viewer.modes.models import ModelLaps
from racer_viewer.modes.play import PauseScreen, PlayScreen
from racer_viewer.modes.race import ENDLESS, HELD, PENALTY_TICKS, Entrant, PutBack, Race, RaceSetup
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.render.camera import Mode
from racer_viewer.render.overlays.race_hud import GREEN_LIGHT, LIGHTS, RED_LIGHT, RaceHud, Words
from racer_viewer.replays import load_replay, save_replay, trace_replay
from racer_viewer.replays.records import MEDAL_NAMES, medal_ticks, medals_of
from racer_viewer.training.evaluation import evaluate
from racer_viewer.ui.item_list import Row
from tests.modes.person import Person
from tests.modes.test_screens import AgentSteering

RED = (200, 0, 0)
FLAT_OUT = (0.0, 1.0, 0.0)


def model(name: str) -> Path:
    return next(path for path in bundled_models() if path.stem == name)


def entrants(*names: str) -> tuple[Entrant, ...]:
    return (Entrant("player", RED), *(Entrant(name, RED, load_agent(model(name))) for name in names))


def start_race(person: Person, driver: str, **settings: object) -> PlayScreen:
    """Start a race in the window with an agent at the player's wheel."""
    person.app.context.change(**settings)
    person.choose("Play")
    person.choose("Start")
    play = person.top(PlayScreen)
    play.steering = AgentSteering(load_agent(model(driver)), play)  # type: ignore[assignment]
    person.ticks(play.countdown)
    return play


def drive_to_results(person: Person) -> ResultsScreen:
    for _ in range(200):
        if isinstance(person.app.context.top, ResultsScreen):
            break
        person.ticks(30)
    return person.top(ResultsScreen)


def test_a_lap_time_is_shown_with_what_it_is_worth(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def note(hud: RaceHud, surface: object, theme: object, words: Words) -> None:
        shown.append(" ".join(text for text, _size, _colour in words if text))

    monkeypatch.setattr(RaceHud, "draw_words", note)
    play = start_race(person, "champion", laps=3, ghost_kind="gold")
    while len(play.live.tick.laps) < 2:
        person.ticks(15)
    assert "Lap 1 8.37 s +1.63 bronze" in shown
    assert "Lap 2 6.67 s −0.07 gold" in shown
    play = restarted(person, "learning-3-slow")
    while not play.live.tick.laps:
        person.ticks(15)
    assert shown[-1].startswith("Lap 1")
    assert shown[-1].endswith(" s does not count")


def restarted(person: Person, driver: str) -> PlayScreen:
    play = person.top(PlayScreen)
    person.press("r")
    play.steering = AgentSteering(load_agent(model(driver)), play)  # type: ignore[assignment]
    return play


def test_a_lap_that_leaves_the_road_is_invalid_live_and_counts_for_nothing(person: Person) -> None:
    play = start_race(person, "learning-3-slow", laps=1)
    seen = set()
    while not play.live.tick.laps:
        person.ticks(10)
        timing = play.view.after.timing
        assert timing is not None
        seen.add(timing.fault)
    (lap,) = play.live.tick.laps
    assert not lap.clean
    assert lap.fault in seen, "the fault was shown while driving"
    assert "in sector" in lap.fault
    results = person.until_top(ResultsScreen)
    assert not results.is_record
    assert results.medal_text == "8.43 s earns bronze"
    circuit = load_circuit("track-01").circuit
    assert circuit is not None
    assert person.app.context.records.best(circuit) is None


@pytest.mark.parametrize("name", ["champion", "learning-3-slow", "specialist-track-02"])
def test_clean_laps_are_those_of_evaluate(name: str) -> None:
    track, agent = load_circuit("track-01"), load_agent(model(name))
    (evaluation,) = evaluate(agent.act, [track], enough_laps=2)
    laps = trace_replay(agent_drive(agent, track)).laps[:2]
    assert all(lap.clean for lap in laps) == evaluation.clean


def test_cars_start_from_their_boxes_and_the_player_from_the_last() -> None:
    race = Race(RaceSetup("track-01", entrants("champion", "sac-track-01"), config=ENDLESS, grid=True))
    first = race.tick().snapshot
    assert first.places == (3, 1, 2)
    assert len({(round(float(car["x"]), 2), round(float(car["y"]), 2)) for car in first.cars}) == 3
    assert [state.distance for state in race.tick().episodes] == pytest.approx([-31.6, -9.6, -20.6], abs=0.01)
    while not race.tick().episodes[1].laps:
        tick = race.step()
    assert tick.episodes[1].lap_ends[0] > tick.episodes[1].laps[0].ticks, "the way to the line is not a lap"


def test_position_and_gaps_are_right_at_every_moment() -> None:
    race = Race(RaceSetup("track-01", entrants("champion", "specialist-track-02"), config=ENDLESS, grid=True))
    gaps = []
    for _ in range(960):
        tick = race.step()
        distances = [state.distance for state in tick.episodes]
        order = sorted(range(3), key=lambda number: -distances[number])
        assert [tick.snapshot.places[number] for number in order] == [1, 2, 3]
        gaps.append(tick.snapshot.gaps[1])
    assert tick.snapshot.places[0] == 3, "the player stands still and was lapped twice"
    assert min(distances[1:]) > 2 * load_circuit("track-01").length
    moving = np.diff(gaps[300:])
    assert (moving < 0.0).all(), "the gap of a standing player grows in every tick"
    assert gaps[-1] == pytest.approx(-960 / 60, abs=1.5)


def test_a_car_that_is_put_back_stands_on_the_road_and_waits(tmp_path: Path) -> None:
    race = Race(RaceSetup("track-01", entrants(), config=ENDLESS))
    while not race.tick().snapshot.car["wall_contact"]:
        race.step(FLAT_OUT)
    at_wall = race.tick().episodes[0]
    race.apply(PutBack())
    tick = race.step(FLAT_OUT)
    car = tick.snapshot.car
    assert (car["surface"], car["wall_contact"], round(float(car["speed"]), 3)) == (0, False, 0.0)
    assert 0.0 < tick.episodes[0].distance <= at_wall.distance + 1.0
    assert tick.episodes[0].held == PENALTY_TICKS - 1
    place = car["x"], car["y"]
    for _ in range(PENALTY_TICKS - 1):
        tick = race.step(FLAT_OUT)
    assert (tick.snapshot.car["x"], tick.snapshot.car["y"]) == pytest.approx(place)
    assert tick.snapshot.timing is not None
    assert "wall contact" in tick.snapshot.timing.fault or "off the road" in tick.snapshot.timing.fault
    for _ in range(60):
        tick = race.step(FLAT_OUT)
    assert tick.snapshot.car["speed"] > 10.0
    replay = tick.followed.replay()
    assert replay is not None
    save_replay(replay, tmp_path / "back.racer")
    trace = trace_replay(load_replay(tmp_path / "back.racer"))
    assert trace.mismatch is None
    assert trace.rows[-1] == tick.snapshot.car
    assert tuple(trace.replay.actions[replay.put_back[0] - 1]) == HELD


def test_the_key_puts_the_car_back(person: Person) -> None:
    play = start_race(person, "champion", laps=0)
    person.ticks(200)
    person.press("b")
    person.frames(2)
    assert play.live.tick.followed.held
    assert play.view.after.timing is not None
    assert "put back on the road" in play.view.after.timing.fault


@pytest.mark.parametrize("again", ["r", "Race again"])
def test_racing_again_has_the_ghost_of_the_new_record(person: Person, again: str) -> None:
    play = start_race(person, "champion", laps=1 if again != "r" else 0)
    assert len(play.view.after.cars) == 1
    if again == "r":
        while not play.live.tick.laps:
            person.ticks(30)
        best = play.live.tick.laps[0].ticks
        person.press("r")
    else:
        results = drive_to_results(person)
        assert results.is_record
        best = play.live.tick.laps[0].ticks
        person.choose(again)
    person.ticks(play.countdown + 30)
    assert [look.ghost for look in play.view.after.styles] == [False, True]
    timing = play.view.after.timing
    assert timing is not None
    assert timing.best == best
    assert timing.ghost_delta is not None


def test_the_delta_to_a_medal_ghost_changes_smoothly_between_two_lines() -> None:
    replay = agent_drive(load_agent(model("champion")), load_circuit("track-01"))
    circuit = load_circuit("track-01").circuit
    assert circuit is not None
    ghost = medal_ghost(circuit, "silver")
    assert ghost is not None
    assert ghost.lap_ticks == medal_ticks(circuit, "silver")
    race = Race(RaceSetup("track-01", entrants(), ghost, ENDLESS))
    deltas = []
    for action in replay.actions[:900]:
        timing = race.step(tuple(action)).snapshot.timing
        assert timing is not None
        deltas.append(timing.ghost_delta or 0.0)
    jumps = (np.abs(np.diff(deltas)) > 3.0).sum()
    assert jumps == len(race.tick().laps) > 0, "it starts again at the line, and never jumps elsewhere"
    assert min(deltas) < -30.0, "the champion is well ahead of silver"


def test_results_list_all_cars_with_gaps_and_the_way_to_the_next_medal(person: Person) -> None:
    start_race(person, "specialist-track-03", laps=2, opponents=("champion", "specialist-track-02"))
    results = drive_to_results(person)
    listed = results.results
    assert [each.place for each in listed] == [1, 2, 3]
    assert listed[0].gap == "winner"
    assert [each.behind for each in listed] == sorted(each.behind for each in listed)
    assert sum(each.is_player for each in listed) == 1
    assert all(each.best is not None for each in listed)
    (player,) = (each for each in listed if each.is_player)
    assert player.best is not None
    assert player.best.clean
    assert results.medal_text == f"{(player.best.ticks - 435) / 60:.2f} s to silver" or player.best.ticks <= 435
    person.choose("Watch replay")
    assert len(person.top(ReplayScreen).traces) == 3
    person.press("escape")
    person.choose("Save replay")
    person.choose("Save replay")
    assert "Already saved" in person.app.context.notice
    assert len(list((person.data / "replays").glob("*.racer"))) == 1
    person.choose("Next circuit")
    play = person.top(PlayScreen)
    assert play.view.after.track is load_circuit("track-02")
    assert person.app.context.settings.circuit == "track-02"
    assert len(play.view.after.cars) == 3


@pytest.mark.parametrize("circuit_id", [circuit.id for circuit in circuits()])
def test_medal_times_follow_from_the_best_clean_lap_of_an_agent(circuit_id: str) -> None:
    track = load_circuit(circuit_id)
    assert track.circuit is not None
    best = trace_replay(agent_drive(load_agent(bundled_authors()[circuit_id]), track)).best_lap
    assert best is not None
    assert track.circuit.medals == medals_for(best.ticks)
    assert medal_ticks(track.circuit, "author") == best.ticks
    assert list(MARGINS.values()) == [1.04, 1.12, 1.30]
    assert all(medal_ticks(track.circuit, medal) for medal in MEDAL_NAMES)


def test_no_bundled_agent_is_faster_than_the_author() -> None:
    track = load_circuit("track-01")
    for path in bundled_models():
        best = trace_replay(agent_drive(load_agent(path), track)).best_lap
        assert best is None or best.ticks >= 389, path.stem


@pytest.mark.parametrize("key", ["p", "space", "escape"])
def test_a_pause_ends_with_a_countdown(person: Person, key: str) -> None:
    play = start_race(person, "champion", laps=0)
    person.ticks(60)
    person.press(key)
    person.top(PauseScreen)
    person.press("p")
    assert person.top(PlayScreen) is play
    before = play.live.tick.followed.ticks
    assert play.countdown > 60
    person.ticks(60)
    assert play.live.tick.followed.ticks == before
    person.ticks(60)
    assert play.live.tick.followed.ticks > before


def test_the_lights_of_the_start_count_the_seconds(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    person.top(PlayScreen)

    def lit(colour: tuple[int, int, int]) -> int:
        return int((pygame.surfarray.array3d(person.picture()) == colour).all(axis=2).sum())

    red = []
    for _second in range(LIGHTS):
        red.append(lit(RED_LIGHT))
        assert not lit(GREEN_LIGHT)
        person.ticks(60)
    assert red == pytest.approx([red[0], 2 * red[0], 3 * red[0]], rel=0.1)
    assert lit(GREEN_LIGHT) == pytest.approx(red[-1], rel=0.1)
    assert not lit(RED_LIGHT)
    person.ticks(120)
    assert not lit(GREEN_LIGHT), "the car can be seen again"


def test_rays_are_off_and_tab_switches_names(person: Person) -> None:
    play = start_race(person, "champion", laps=0)
    assert "rays" not in play.view.shown_overlays
    assert "names" in play.view.shown_overlays
    person.press("tab")
    assert "names" not in play.view.shown_overlays
    assert "rays" in person.app.context.settings.overlays, "they stay on while watching"


def test_the_camera_that_turns_with_the_car_is_kept_for_the_next_race(person: Person) -> None:
    play = start_race(person, "champion", laps=0)
    assert not play.view.camera.look((1280, 720)).turn
    person.press("c")
    assert "turns with the car" in person.app.context.notice
    person.ticks(60)
    assert play.view.camera.view.turn
    person.scroll(1, 600, 300)
    assert play.view.camera.closer == 1, "the wheel zooms here too"
    person.press("escape")
    person.choose("Main menu")
    again = start_race(person, "champion")
    assert again.view.camera.mode is Mode.TURN
    person.press("c")
    assert again.view.camera.mode is Mode.WHOLE
    assert person.app.context.settings.camera == "turn"


@pytest.mark.slow
def test_opponents_are_chosen_by_their_skill_and_lap_times_on_the_circuit(person: Person) -> None:
    person.choose("Play")
    person.choose("Opponents")
    chooser = person.top(OpponentsScreen)

    def cells(name: str) -> tuple[str, ...]:
        row = chooser.list.find(name)
        assert isinstance(row, Row)
        return row.cells

    person.until(lambda: not chooser.timer.running, "the lap times")
    assert cells("champion")[:2] == ("Champion", "8.37 / 6.67")
    assert cells("learning-4-fast")[0] == "Amateur", "it leaves the road: one level lower than its time"
    assert cells("learning-3-slow")[0] == "Rookie"
    person.choose("sac-track-01")
    assert person.app.context.settings.opponents == ("sac-track-01",)


def test_the_driving_keys_are_shown_until_the_car_drives_and_when_it_stands_still(person: Person) -> None:
    person.choose("Play")
    person.choose("Start")
    play = person.top(PlayScreen)
    assert play.driving_hint is not None
    assert [key for key, does in play.driving_hint.keys] == ["Up", "Left Right"]
    person.ticks(play.countdown + 60)
    assert play.driving_hint is not None, "nothing was pressed after GO"
    person.hold("up")
    person.ticks(45)
    assert play.driving_hint is None
    person.release("up")
    person.hold("down")
    person.ticks(60)
    person.release("down")
    for _ in range(30):
        person.ticks(30)
        if play.driving_hint is not None:
            break
    assert play.driving_hint is not None, "the car stands still"
    person.pad(pygame.CONTROLLER_BUTTON_RIGHTSHOULDER)
    assert [key for key, does in play.driving_hint.keys] == ["RT", "Stick"]


def test_the_menu_continues_the_last_race_and_shows_the_medals(person: Person) -> None:
    menu = person.top(MenuScreen)
    assert "Continue" not in [item.label for item in menu.list.items]
    start_race(person, "champion", laps=1, circuit="track-01")
    drive_to_results(person)
    person.choose("Main menu")
    person.frames(3)
    assert menu.list.find("Continue").value == load_circuit("track-01").circuit.name  # type: ignore[union-attr]
    assert menu.cards is not None
    assert [each.medal for each in menu.cards.medals] == ["bronze", None, None, None, None, None]
    person.choose("Continue")
    assert person.top(PlayScreen).live.setup.circuit == "track-01"


def test_a_race_goes_on_with_a_countdown_after_a_film(person: Person) -> None:
    play = start_race(person, "champion", laps=0)
    person.ticks(30)
    person.press("f10")
    person.frames(5)
    person.press("f10")
    person.until(lambda: not isinstance(person.app.context.top, FilmScreen), "the film")
    person.press("return")
    assert person.top(PlayScreen) is play
    before = play.live.tick.followed.ticks
    assert play.countdown > 60
    person.ticks(60)
    assert play.live.tick.followed.ticks == before


def test_a_random_circuit_gets_medals_from_clean_laps_of_the_champion(person: Person) -> None:
    circuit = load_circuit("random:1001").circuit
    assert circuit is not None
    assert medals_of(circuit) is None
    person.app.context.change(circuit="random:1001", ghost_kind="gold")
    person.choose("Play")
    person.until(lambda: medals_of(circuit) is not None, "the laps of the champion")
    best = trace_replay(agent_drive(load_agent(model("champion")), load_circuit("random:1001"), enough=0)).best_lap
    author, gold = medal_ticks(circuit, "author"), medal_ticks(circuit, "gold")
    assert best is not None
    assert author is not None
    assert gold is not None
    assert best.ticks <= author <= best.ticks * 1.02, "its first flying lap"
    person.choose("Start")
    ghost = person.top(PlayScreen).live.setup.ghost
    assert ghost is not None
    assert ghost.lap_ticks == gold


def test_laps_off_the_road_decide_no_medals() -> None:
    circuit = load_circuit("random:1002").circuit
    assert circuit is not None
    assert not take_measured_laps(circuit, ModelLaps(20.0, 18.0, clean=False))
    assert not take_measured_laps(circuit, ModelLaps(20.0, None, clean=True))
    assert medals_of(circuit) is None

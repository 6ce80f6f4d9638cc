"""Layout of every screen at five sizes, five interface scales and in all languages.

Nothing covers anything, no text is cut, and the typeface has every letter. A new screen is one more entry of `SCREENS`.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import cycle, product
from pathlib import Path

import pytest

from racer_env.engine import Medals, load_circuit, parse_config
from racer_viewer.agents import CHAMPION, load_agent
from racer_viewer.app.menu import MenuScreen, WelcomeScreen
from racer_viewer.app.tour import TourMenu
from racer_viewer.circuits.draft import Draft, set_text
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.modes.career import EVENTS, CareerScreen, MedalsScreen
from racer_viewer.modes.choose import SKILLS, OpponentsScreen, PlaySetupScreen, WatchSetupScreen
from racer_viewer.modes.editor.menu import EditorMenu
from racer_viewer.modes.episodes import EpisodesScreen
from racer_viewer.modes.file_browser import FileBrowser
from racer_viewer.modes.film_screen import FilmScreen
from racer_viewer.modes.gallery.actions import CircuitScreen
from racer_viewer.modes.gallery.dial import RandomDialScreen
from racer_viewer.modes.gallery.screen import GalleryScreen
from racer_viewer.modes.help import HelpScreen
from racer_viewer.modes.ladder import agent_drive
from racer_viewer.modes.lap_comparison import open_lap_comparison
from racer_viewer.modes.play import PlayScreen, open_play
from racer_viewer.modes.replay_lists import RecordsScreen, ReplaysScreen
from racer_viewer.modes.replay_screen import ReplayScreen
from racer_viewer.modes.results import ResultsScreen
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import KeysScreen, NameScreen, SettingsScreen
from racer_viewer.modes.train.end import MoreStepsScreen, TrainEndScreen
from racer_viewer.modes.train.formula_screen import FormulaScreen
from racer_viewer.modes.train.menu import DiscardScreen, LeaveTrainingScreen, WeightsScreen
from racer_viewer.modes.train.panels import TrainLayout
from racer_viewer.modes.train.reward_screen import RewardLabScreen
from racer_viewer.modes.train.runs import RunsScreen
from racer_viewer.modes.train.screen import TrainScreen
from racer_viewer.modes.train.setup import TrainSetupScreen, open_run
from racer_viewer.modes.train.teach import TeachScreen
from racer_viewer.modes.waiting import WaitingScreen
from racer_viewer.modes.watch import WatchScreen, open_watch
from racer_viewer.replays import save_replay, trace_replay
from racer_viewer.replays.records import set_measured_medals
from racer_viewer.translation import LANGUAGES, Language, _
from racer_viewer.ui.intents import OVERLAY_COMMANDS
from racer_viewer.ui.item_list import Row
from racer_viewer.ui.theme import Theme
from tests.modes.drawn import noted
from tests.modes.editing import Draughtsman, oval
from tests.modes.person import Person
from tests.modes.run_folders import make_run
from tests.modes.test_correcting import correct, correcting
from tests.modes.test_screens import AgentSteering
from tests.replays.replay_drives import ring_run
from tests.training.noisy_drives import noisy_drive

Case = tuple[tuple[int, int], float]
"""Size of the window [px] and interface scale."""
SIZES = ((960, 540), (1280, 720), (1920, 1080), (2560, 1440), (3840, 2160))
SCALES = (0.8, 1.0, 1.25, 1.5, 2.0)
USUAL: tuple[Case, ...] = (((960, 540), 2.0), ((1280, 720), 1.0), ((1920, 1080), 1.5))
"""Sizes and scales of the usual tests, which are in English."""
SMALL_SIZES = SIZES[:2]
"""Sizes of the slow tests in other languages than English, which has all: texts are cut where there is little room."""
EVERYTHING = tuple(command.value for command in OVERLAY_COMMANDS)
NAMES = re.compile(r"champion|opponent|a-run-with-a-long-name|a-folder-with|bundled: ")
"""Names that people have chosen, which may be shortened."""
TOAST = "Saved as a file with a long name in a folder whose name is long too: /home/somebody/racer/replays/lap.racer"


def simple(screen: type[Screen]) -> Callable[[Person], None]:
    return lambda person: person.app.context.push(screen(person.app.context))  # type: ignore[call-arg]


def teach(person: Person) -> None:
    """List two replays to learn from, one of them marked."""
    paths = [person.data / "replays" / f"lap {number}.racer" for number in range(2)]
    paths[0].parent.mkdir()
    for number, path in enumerate(paths):
        save_replay(noisy_drive(number, laps=1), path)
    screen = TeachScreen(person.app.context, paths[:1], lambda replays, lessons: None)
    person.app.context.push(screen)
    person.until(lambda: len(screen.list.items) == 3, "both replays")


def play(person: Person) -> None:
    """Race seven cars with everything shown."""
    app = person.app.context
    app.change(play_overlays=EVERYTHING)
    open_play(app, "track-06", [(f"opponent {number}", Path(CHAMPION)) for number in range(7)], 3)
    screen = person.until_top(PlayScreen)
    person.ticks(screen.countdown + 200)
    screen.view.show_keys()


def drive(person: Person, driver: str, over: Callable[[], bool]) -> None:
    """Let an agent drive the race on top until it is over."""
    screen = person.until_top(PlayScreen)
    screen.steering = AgentSteering(load_agent(driver), screen)  # type: ignore[assignment]
    for _step in range(200):
        if over():
            return
        person.ticks(15)
    raise AssertionError("the race is not over")


def lap_time(person: Person) -> None:
    """Finish a lap that does not count, with everything shown and a ghost."""
    app = person.app.context
    app.change(play_overlays=EVERYTHING, ghost_kind="author")
    open_play(app, "track-01", [(f"opponent {number}", Path(CHAMPION)) for number in range(7)], 5)
    screen = person.until_top(PlayScreen)
    drive(person, "learning-3-slow", lambda: bool(screen.live.tick.laps))
    assert screen.hud.signs


def event_won(person: Person) -> None:
    """Win an event of the career, with all of its laps listed."""
    person.app.context.push(CareerScreen(person.app.context))
    person.press("return")
    drive(person, CHAMPION, lambda: isinstance(person.app.context.top, ResultsScreen))


def lap_comparison(person: Person) -> None:
    """Compare two laps with a place chosen and the mouse over a chart."""
    traces = [trace_replay(ring_run(400, throttle, driver)) for throttle, driver in ((1.0, "Anna"), (0.7, "opponent"))]
    open_lap_comparison(person.app.context, traces)
    person.press("down", "down", "down")


def corrected(person: Person, choices: tuple[str, ...] | None = None) -> None:
    """Correct an agent once; then open its menu and choose something there, if wanted."""
    screen = correcting(person)
    correct(person, screen, 60, 40)
    screen.view.show_keys()
    if choices is not None:
        person.press("escape")
        for choice in choices:
            person.choose(_(choice))


def welcome(person: Person) -> None:
    person.app.context.push(WelcomeScreen(person.app.context))


def cards(person: Person) -> None:
    """Show the main menu with everything that it can show."""
    app = person.app.context
    app.records.enter(agent_drive(load_agent(CHAMPION), load_circuit("track-01"), enough=600))
    app.records.win_event("first-medal", "You")
    app.change(raced=True)
    person.ticks(60)
    menu = person.top(MenuScreen)
    assert menu.cards is not None
    menu.cards.refresh()
    person.frames(2)


def countdown(person: Person) -> None:
    play(person)
    person.top(PlayScreen).restart()
    person.ticks(10)


def paused(person: Person) -> None:
    play(person)
    person.press("escape")


def results(person: Person) -> None:
    play(person)
    screen = person.top(PlayScreen)
    screen.finish()
    person.top(ResultsScreen)


def watch(person: Person) -> None:
    app = person.app.context
    app.change(overlays=(*EVERYTHING, "episodes"))
    open_watch(app, [Path(CHAMPION)] * 8, "track-06")
    screen = person.until_top(WatchScreen)
    person.ticks(150)
    screen.next_episode()
    person.ticks(60)
    screen.view.show_keys()


def watch_menu(person: Person) -> None:
    watch(person)
    person.press("escape")


def recorded(person: Person) -> None:
    watch(person)
    person.press("f10")
    person.frames(3)


def filmed(person: Person) -> None:
    recorded(person)
    person.press("f10")
    person.until_top(FilmScreen)


def waiting(person: Person) -> None:
    app = person.app.context
    app.push(WaitingScreen(app, "Connecting to a server with a long address", lambda: False, lambda: None, delay=0))
    person.ticks(60)


def episodes(person: Person) -> None:
    watch(person)
    screen = person.top(WatchScreen)
    person.app.context.push(EpisodesScreen(person.app.context, screen.all_episodes()))


def replay(person: Person) -> None:
    app = person.app.context
    app.change(overlays=EVERYTHING)
    traces = [trace_replay(ring_run(throttle=throttle)) for throttle in (1.0, 0.8)]
    app.push(ReplayScreen(app, traces))
    person.ticks(90)
    person.top(ReplayScreen).view.show_keys()


def train(person: Person) -> None:
    app = person.app.context
    app.change(overlays=EVERYTHING)
    open_run(app, make_run(person.data, "mine"))
    person.until_top(TrainScreen)
    person.frames(5)
    person.top(TrainScreen).view.show_keys()


def curves(person: Person) -> None:
    train(person)
    person.top(TrainScreen).layout = TrainLayout.CURVES


def train_menu(person: Person) -> None:
    train(person)
    person.press("escape")


def over_run(person: Person, screen: Callable[[AppContext, TrainScreen], Screen]) -> None:
    """Show a screen over a run."""
    train(person)
    app = person.app.context
    app.push(screen(app, person.top(TrainScreen)))


def more_steps(app: AppContext, train: TrainScreen) -> Screen:
    return MoreStepsScreen(app, train.run.folder, 16_384, 1_000_000)


def leaving(app: AppContext, train: TrainScreen) -> Screen:
    return LeaveTrainingScreen(app, train, lambda: None)


def discarding(app: AppContext, train: TrainScreen) -> Screen:
    return DiscardScreen(app, train, lambda: None)


def runs(person: Person) -> None:
    for name in ("good", "a-run-with-a-long-name-to-be-shown"):
        make_run(person.data, name)
    app = person.app.context
    screen = RunsScreen(app)
    app.push(screen)
    person.until(lambda: not screen.reading, "the list")


def explained(person: Person) -> None:
    watch(person)
    person.write("?")


def tour(person: Person, part: int) -> None:
    """Begin a part of the guided tour, with its hint."""
    app = person.app.context
    app.change(tour="skipped", tour_part=part)
    assert app.start_tour is not None
    app.start_tour()
    person.until(lambda: app.layer is not None, "the tour")
    person.ticks(240)


def tour_menu(person: Person) -> None:
    tour(person, 0)
    person.press("escape")
    person.top(TourMenu)


def won(person: Person, screen: type[Screen]) -> None:
    """Show medals and events after some were won."""
    app = person.app.context
    app.records.enter(agent_drive(load_agent(CHAMPION), load_circuit("track-01"), enough=600))
    for event in EVENTS[:3]:
        app.records.win_event(event.id, "You")
    app.push(screen(app))  # type: ignore[call-arg]


def opponents_measured(person: Person) -> None:
    """Show opponents with all skills and long lap times."""
    app = person.app.context
    screen = OpponentsScreen(app)
    app.push(screen)
    rows = (item for item in screen.list.items if isinstance(item, Row))
    for row, skill in zip(rows, cycle(SKILLS), strict=False):
        row.cells = (_(skill), "* 112.37 / 100.67", *row.cells[2:])


def keys_conflict(person: Person) -> None:
    """Ask whether a key may be taken from another command."""
    person.app.context.push(KeysScreen(person.app.context))
    person.press("down", "down", "down", "down", "return", "c")
    person.top(MessageScreen)


def quitting(person: Person) -> None:
    person.press("escape")
    person.top(MessageScreen)


def gallery(person: Person) -> None:
    """Show own, damaged, bundled and random circuits, one of which was deleted."""
    app, library = person.app.context, CircuitLibrary(person.data)
    circuit = load_circuit("track-05").circuit
    assert circuit is not None
    draft = Draft.from_circuit(circuit)
    for name in ("opponent's circuit with a name that is quite long", "opponent's ring"):
        library.save(set_text(draft, name=name))
    library.save(Draft("opponent's draft", points=draft.points[:3]))
    app.change(circuit="random:7")
    screen = GalleryScreen(app)
    app.push(screen)
    screen.take_deleted("opponent's ring", library.delete(library.entries()[1]))
    person.frames(2)
    person.until(lambda: len(screen.loader.facts) >= 5, "facts of circuits")


def circuit_menu(person: Person) -> None:
    gallery(person)
    screen = person.top(GalleryScreen)
    own = screen.circuits["own"][1]
    person.app.context.push(CircuitScreen(person.app.context, own, None, screen.take_deleted))


def random_dial(person: Person) -> None:
    person.app.context.push(RandomDialScreen(person.app.context))
    dial = person.top(RandomDialScreen)
    person.until(lambda: dial.rolled is not None, "a circuit")


def browser(person: Person) -> None:
    app, folder = person.app.context, person.data / "a-folder-with-many-files-in-it"
    folder.mkdir()
    for number in range(20):
        (folder / f"opponent {number}.racer").touch()
    app.browsed = folder
    app.push(FileBrowser(app, "Open a replay", (".racer",), lambda path: None))


def question(person: Person) -> None:
    text = "Eight drivers wait for the lights to go out.\nEverything that you have saved is safe. " * 3
    person.app.context.push(MessageScreen(person.app.context, "A question", text))


def reward_lab(person: Person) -> None:
    """Show a reward with eight terms and several warnings."""
    app = person.app.context
    terms = {f"a_term_with_a_long_name{number}": "0.001 * speed" for number in range(8)}
    rewards = parse_config({"weights": {"progress": 0.0, "stillnessPenalty": 0.0}, "terms": terms})
    screen = RewardLabScreen(app, rewards, "track-01", True, lambda taken: None)
    app.push(screen)
    person.until(lambda: screen.scored, "the scores")


def reward_term(person: Person, formula: str) -> None:
    reward_lab(person)
    app, lab = person.app.context, person.top(RewardLabScreen)
    app.push(FormulaScreen(app, "a_term_with_a_long_name9", formula, {}, lab.drives, lambda name, text: None))


def editor(person: Person, stroke: bool = True, problems: bool = False, trial: str = "", menu: bool = False) -> None:
    """Open the editor with a circuit, with problems, with agents beside it, or with its menu."""
    user = Draughtsman(person)
    if stroke:
        user.stroke(oval())
        user.screen.document.select([3])
        user.checked()
    if trial:
        set_measured_medals(user.screen.document.draft.to_circuit(), Medals(gold=110.0, silver=120.0, bronze=130.0))
        person.press(trial)
        person.until(lambda: user.screen.trial is not None, "the agents")
        person.frames(5)
    if problems:
        user.move(user.pixel_of_point(2), user.pixel_of_point(len(user.points) // 2))
        user.checked()
    if menu:
        person.press("escape")


def circuit_name(person: Person) -> None:
    editor(person)
    person.press("n")


def unsaved(person: Person) -> None:
    editor(person, menu=True)
    person.top(EditorMenu)
    person.press("up", "return")


SCREENS: dict[str, Callable[[Person], None]] = {
    "menu": lambda person: None,
    "menu with cards": cards,
    "welcome": welcome,
    "career": simple(CareerScreen),
    "medals": simple(MedalsScreen),
    "event won": event_won,
    "play": play,
    "lap time": lap_time,
    "countdown": countdown,
    "pause": paused,
    "results": results,
    "watch": watch,
    "watch menu": watch_menu,
    "recording": recorded,
    "film": filmed,
    "waiting": waiting,
    "explanations": explained,
    "episodes": episodes,
    "replay": replay,
    "train": train,
    "curves": curves,
    "train menu": train_menu,
    "train end": partial(over_run, screen=TrainEndScreen),
    "more steps": partial(over_run, screen=more_steps),
    "reward weights": partial(over_run, screen=WeightsScreen),
    "leaving a run": partial(over_run, screen=leaving),
    "discarding a run": partial(over_run, screen=discarding),
    "train setup": simple(TrainSetupScreen),
    "teach": teach,
    "reward lab": reward_lab,
    "reward term": partial(reward_term, formula="0.001 * (1 - centre_distance / half_width) if speed > 40 else curv"),
    "reward term, accepted": partial(reward_term, formula="-0.001 * abs(steer_change)"),
    "runs": runs,
    "play setup": simple(PlaySetupScreen),
    "opponents": simple(OpponentsScreen),
    "watch setup": simple(WatchSetupScreen),
    "records": simple(RecordsScreen),
    "replays": simple(ReplaysScreen),
    "circuits": gallery,
    "circuit": circuit_menu,
    "random circuit": random_dial,
    "settings": simple(SettingsScreen),
    "keys": simple(KeysScreen),
    "name": simple(NameScreen),
    "help": simple(HelpScreen),
    "tour, driving": partial(tour, part=0),
    "tour, watching": partial(tour, part=1),
    "tour, racing": partial(tour, part=3),
    "tour menu": tour_menu,
    "career, in part won": partial(won, screen=CareerScreen),
    "medals, in part won": partial(won, screen=MedalsScreen),
    "opponents, measured": opponents_measured,
    "keys, taken": keys_conflict,
    "quit": quitting,
    "browser": browser,
    "message": question,
    "lap comparison": lap_comparison,
    "editor, empty": partial(editor, stroke=False),
    "editor": editor,
    "editor, problems": partial(editor, problems=True),
    "editor, champion": partial(editor, trial="w"),
    "editor, menu": partial(editor, menu=True),
    "circuit name": circuit_name,
    "unsaved circuit": unsaved,
    "correcting": corrected,
    "corrections": partial(corrected, choices=("Corrections",)),
    "corrected menu": partial(corrected, choices=()),
    "leaving corrections": partial(corrected, choices=("Leave",)),
}


def open_screen(person: Person, name: str, language: Language) -> None:
    person.app.context.change(language=language)
    SCREENS[name](person)


def problems(person: Person, patch: pytest.MonkeyPatch, case: Case) -> list[str]:
    """Return what is wrong with the screen on top, without and with a notice."""
    app, found = person.app.context, []
    size, scale = case
    app.change(ui_scale=scale)
    for notice in ("", TOAST):
        app.theme = Theme(0.1)  # so that everything is drawn anew
        app.notify(notice)
        app.notice_ticks = 200 if notice else 0
        with noted(patch, size) as frame:
            for _frame in range(3):
                frame.parts.clear()
                frame.problems.clear()
                person.app.draw(1.0)
            found += [*frame.problems, *(each for each in frame.shortened if not NAMES.search(each))]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("name", SCREENS)
def test_nothing_covers_anything_in_usual_windows(person: Person, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    open_screen(person, name, "en")
    found = {case: problems(person, monkeypatch, case) for case in USUAL}
    assert not any(found.values()), found


def test_results_show_all_cars_even_where_there_is_hardly_room(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    results(person)
    person.app.context.change(ui_scale=2.0)
    with noted(monkeypatch, (960, 540)) as frame:
        for _frame in range(2):
            frame.parts.clear()
            person.app.draw(1.0)
        words = [part.words for part in frame.parts]
    assert {f"opponent {number}" for number in range(7)} | {"You", "winner", "Race again"} <= {*words}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SCREENS)
def test_nothing_covers_anything_at_any_size(
    person: Person, monkeypatch: pytest.MonkeyPatch, name: str, language: Language
) -> None:
    open_screen(person, name, language)
    sizes = SIZES if language == "en" else SMALL_SIZES
    found = {case: problems(person, monkeypatch, case) for case in product(sizes, SCALES)}
    assert not any(found.values()), found

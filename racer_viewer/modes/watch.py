"""Watch: trained agents drive, and everything that they see and want is shown.

What can be done while watching, for those who have no keyboard at hand or do not know its keys."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_viewer.agents import AgentError, load_agent
from racer_viewer.modes.circuits import fixed_circuits
from racer_viewer.modes.controls import NAMES, NORMAL, SteeringInput
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.episodes import KEPT, Episode, EpisodesScreen, EpisodeTable, episode_of
from racer_viewer.modes.keeping import keep_replay
from racer_viewer.modes.models import distinct_names
from racer_viewer.modes.race import ANYWHERE, AT_THE_LINE, Entrant, Race, RaceSetup
from racer_viewer.modes.race_view import RaceScreen
from racer_viewer.modes.screen import AppContext, Key, ListScreen, MessageScreen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_race
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Choice, Item, toggle
from racer_viewer.ui.paint import ColouredWords
from racer_viewer.ui.theme import Palette

if TYPE_CHECKING:
    import pygame

MOST_CARS = 8
TABLE_TICKS = 15
"""Of the window, from one look at the running episodes to the next."""
SKIPPED, LEFT = "skipped", "left"
BEHIND = 0.9
"""Of the speed that was asked for: what is less is told."""


def open_watch(app: AppContext, models: Sequence[Path], circuit: str, stochastic: bool = False) -> None:
    """Watch some models on a circuit, against each other; one that cannot be loaded gives its reason on screen."""
    try:
        entrants = entrants_of(models, app.theme.palette)
    except (AgentError, OSError) as error:
        app.push(MessageScreen(app, "This model cannot be watched", str(error)))
        return
    setup = RaceSetup(circuit, entrants, bridge=app.bridge)

    def begin(race: Race) -> None:
        screen = WatchScreen(app, setup, race)
        if stochastic:
            screen.draw_actions(True)
        app.push(screen)

    open_race(app, setup, begin)


def entrants_of(models: Sequence[Path], palette: Palette) -> tuple[Entrant, ...]:
    """Agents, each in a colour of its own; the first in that of the player."""
    colours = (palette.player, *palette.cars)
    agents = [load_agent(path) for path in models[:MOST_CARS]]
    names = distinct_names([agent.info.path for agent in agents])
    return tuple(
        Entrant(name, colours[number % len(colours)], agent)
        for number, (name, agent) in enumerate(zip(names, agents, strict=True))
    )


class WatchScreen(RaceScreen):
    """Episode after episode. Time goes as fast as the viewer likes, and anybody may take the wheel."""

    def __init__(self, app: AppContext, setup: RaceSetup, race: Race, drive: Drive | None = None) -> None:
        super().__init__(app, setup, race, drive)
        self._wanted = setup.circuit
        """The circuit that was asked for last; a bridge may not have it."""
        self.episodes: list[Episode] = []
        self.number = 1
        """Of the episode that is driven now."""
        self._seed = race.seed
        """That the episode on screen was drawn by, or will be as soon as the bridge has answered."""
        self.at_the_wheel = self.drawn = self.anywhere = False
        self._wheel, self._table = SteeringInput(), EpisodeTable()
        self._running: tuple[Episode, ...] = ()
        self._ticks, self._asked, self._driven, self._since = 0, 0.0, 0, time.monotonic()
        self._rate = 1.0
        """Of the speed that was asked for, what was reached in the last second."""

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("Esc", "menu"),
            (key(Command.PAUSE), "go on" if self.pace.stopped else "stop"),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", "speed"),
            (key(Command.TICK), "one tick"),
            (key(Command.NEXT_EPISODE), "next"),
            (key(Command.WHEEL), "hand back" if self.at_the_wheel else "take the wheel"),
            (key(Command.VARIATION), "deterministic" if self.drawn else "stochastic"),
            *([(key(Command.NEXT_CAR), "next car")] if len(self.setup.entrants) > 1 else []),
            (f"{key(Command.PREVIOUS_CIRCUIT)} {key(Command.NEXT_CIRCUIT)}", "circuit"),
            (key(Command.KEEP), "keep"),
            (key(Command.EPISODES), "episodes"),
            *super().keys()[1:],
        )

    def status(self) -> ColouredWords:
        palette = self.app.theme.palette
        name = self.setup.entrants[self.focus].name
        driver = f"You drive {name}'s car" if self.at_the_wheel else f"{name} drives"
        speed = self.pace.name
        if not self.pace.stopped and self._rate < BEHIND and self.pace.speed > 1.0:
            speed += f" (here about {self.pace.speed * self._rate:.1f}×)"
        circuit = self.after.track.circuit
        return (
            (driver, palette.accent if self.at_the_wheel else palette.text),
            ("stopped" if self.pace.stopped else speed, palette.accent if self.pace.stopped else palette.text),
            (circuit.name if circuit else "", palette.faint),
            (f"episode {self.number}", palette.faint),
            ("stochastic" if self.drawn else "deterministic", palette.faint),
        )

    @property
    def focus(self) -> int:
        return self.after.focus

    def handle(self, intent: Intent) -> None:
        if self.pace.handle(intent):
            return
        match intent:
            case Command.BACK:
                self.app.push(WatchMenu(self.app, self))
            case Command.NEXT_EPISODE:
                self.next_episode()
            case Command.RESTART:
                self.next_episode()
            case Command.WHEEL:
                self.take_the_wheel(not self.at_the_wheel)
            case Command.VARIATION:
                self.draw_actions(not self.drawn)
            case Command.NEXT_CAR:
                self.follow((self.focus + 1) % len(self.setup.entrants))
            case Command.PREVIOUS_CIRCUIT | Command.NEXT_CIRCUIT:
                self.switch_circuit(1 if intent == Command.NEXT_CIRCUIT else -1)
            case Command.KEEP:
                self.drive.order(lambda race: keep_replay(self.app, race.replay()))
            case Command.EPISODES:
                self.toggle("episodes")
            case _:
                super().handle(intent)

    def tick(self, controls: Controls) -> None:
        due = self.pace.ticks()
        action = self._wheel.turn(controls, float(self.after.car["speed"])) if self.at_the_wheel else (0.0, 0.0, 0.0)
        driven = self.advance(due, action)
        if not driven:
            self._scene.camera.tick(self.after)  # it may be on its way to another view
        self._measure(due, len(driven))
        if self.race.over and self.race.seed == self._seed:
            self._end_episode("")
        self._ticks += 1
        if self._ticks % TABLE_TICKS == 0:
            self._note_running()

    def next_episode(self) -> None:
        """Leave this one as it is."""
        self._end_episode(SKIPPED)

    def take_the_wheel(self, on: bool) -> None:
        """Drive the followed car, or let its agent go on from where it is."""
        if on == self.at_the_wheel:
            return
        self.at_the_wheel = on
        self._wheel.let_go()
        self.drive.order(lambda race: setattr(race, "person_drives", on))
        if on:
            self.pace.stopped, self.pace.chosen = False, NORMAL
        name = self.setup.entrants[self.focus].name
        self.app.notify("You drive" if on else f"{name} goes on from here")

    def draw_actions(self, on: bool) -> None:
        """Whether agents draw their actions as they do in training."""
        self.drawn = on
        self.drive.order(lambda race: setattr(race, "drawn", on))
        still = [each.name for each in self.setup.entrants if each.agent is not None and not each.agent.noise_shape]
        if on and still:
            self.app.notify(f"{', '.join(still)}: this kind of model has nothing to draw, and does the same as ever")
        else:
            self.app.notify(
                "Stochastic: actions are drawn, as in training" if on else "Deterministic: the best actions"
            )

    def start_anywhere(self, on: bool) -> None:
        """Whether the next episodes begin anywhere on the circuit."""
        if on and self.link is not None and not self.link.telemetry:
            self.app.notify("This bridge starts episodes on the line only")
            return
        self.anywhere = on
        self.drive.order(lambda race: setattr(race, "start", ANYWHERE if on else AT_THE_LINE))

    def follow(self, number: int) -> None:
        """Another car; its own agent drives the one that was followed."""
        self.take_the_wheel(False)
        self.drive.order(lambda race: setattr(race, "focus", number))

    def switch_circuit(self, by: int) -> None:
        """The next one of those that can be chosen, or the one before."""
        ids = list(fixed_circuits(self.setup.circuit))
        now = ids.index(self._wanted) if self._wanted in ids else -1
        self.go_to(ids[(now + by) % len(ids)])

    def go_to(self, circuit: str) -> None:
        """All begin at the start of another circuit."""
        self._wanted = circuit
        self.reopen(replace(self.setup, circuit=circuit))

    def join(self, path: Path) -> None:
        """One more model races."""
        if len(self.setup.entrants) >= MOST_CARS:
            self.app.notify(f"At most {MOST_CARS} cars race")
            return
        palette = self.app.theme.palette
        try:
            agent = load_agent(path)
        except (AgentError, OSError) as error:
            self.app.push(MessageScreen(self.app, "This model cannot be watched", str(error)))
            return
        others = self.setup.entrants
        colour = palette.cars[(len(others) - 1) % len(palette.cars)]
        paths = [each.agent.info.path for each in others if each.agent is not None]
        name = distinct_names([*paths, agent.info.path])[-1]
        self.reopen(replace(self.setup, entrants=(*others, Entrant(name, colour, agent))))

    def take(self, setup: RaceSetup, race: Race) -> None:
        focus = self.focus if self.focus < len(race.cars) else 0
        race.focus, race.drawn, race.start = focus, self.drawn, ANYWHERE if self.anywhere else AT_THE_LINE
        self.at_the_wheel = False
        self._seed = race.seed
        super().take(setup, race)
        if setup.circuit != self.app.settings.circuit:
            self.app.change(circuit=setup.circuit)
        self._note_running()

    def part(self) -> None:
        if not self._parted:
            self._note_episodes(self.race, LEFT)
        super().part()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        super().draw(surface, share)
        if self.app.top is self and "episodes" in self.app.settings.overlays:
            table = self._table.draw(surface, self.app.theme, self.episodes, self._running, self.top_reserved)
            self.camera.insets = self.camera.insets._replace(top=table.bottom)

    def _end_episode(self, ending: str) -> None:
        """Note what came of it, and begin the next one, drawn by its number."""
        self.take_the_wheel(False)
        self._seed = seed = self.number

        def end(race: Race) -> None:
            self._note_episodes(race, ending)
            race.restart(seed)

        self.drive.order(end)

    def _note_episodes(self, race: Race, ending: str) -> None:
        over = [episode_of(car, self.number, ending) for car in race.cars if car.ticks]
        self.episodes = [*self.episodes, *over][-KEPT:]
        self.number += bool(over)
        self._running = ()

    def _note_running(self) -> None:
        self._running = tuple(episode_of(car, self.number) for car in self.race.cars)

    def _measure(self, due: int, driven: int) -> None:
        """How much of what was asked for was driven, second by second."""
        self._asked += due
        self._driven += driven
        now = time.monotonic()
        if now - self._since >= 1.0:
            self._rate = self._driven / self._asked if self._asked else 1.0
            self._asked, self._driven, self._since = 0.0, 0, now


class WatchMenu(ListScreen):
    """Nothing moves while it is open."""

    title = "Watch"
    darkness = 150

    def __init__(self, app: AppContext, watch: WatchScreen) -> None:
        self._watch = watch
        here = watch.setup.circuit
        names = {found: circuit.name for found, circuit in fixed_circuits(here).items()}
        names.setdefault(here, here)
        self._circuits = list(names)
        self._here = self._circuits.index(here)
        self._circuit = Choice(
            "Circuit",
            "All begin at its start as soon as you go on",
            options=list(names.values()),
            chosen=self._here,
        )
        super().__init__(app, self._items(app, watch))

    @property
    def subtitle(self) -> str:
        return ", ".join(entrant.name for entrant in self._watch.setup.entrants)

    def back(self) -> None:
        """Go on watching, on another circuit if one was chosen."""
        super().back()
        if self._circuit.chosen != self._here:
            self._watch.go_to(self._circuits[self._circuit.chosen])

    def _items(self, app: AppContext, watch: WatchScreen) -> list[Item]:
        wheel = "Hand the wheel back" if watch.at_the_wheel else "Take the wheel"
        return [
            Button("Go on", on_press=self.back),
            Button(wheel, "The agent goes on from wherever you leave the car", on_press=self._take_or_leave),
            Button("Next episode", on_press=self._next),
            Choice("Speed", options=NAMES, chosen=watch.pace.chosen, on_change=self._change_speed),
            self._circuit,
            Choice(
                "Actions",
                "Stochastic ones are drawn around the best, as in training",
                options=("deterministic", "stochastic"),
                chosen=int(watch.drawn),
                on_change=lambda number: watch.draw_actions(bool(number)),
            ),
            toggle(
                "Start anywhere",
                watch.anywhere,
                watch.start_anywhere,
                "The next episodes begin elsewhere",
            ),
            Button("Episodes", "See one again, or keep it", on_press=lambda: app.push(EpisodesScreen(app, watch))),
            Button("Settings", on_press=lambda: app.push(SettingsScreen(app))),
            Button("Leave", on_press=self._leave),
        ]

    def _change_speed(self, number: int) -> None:
        self._watch.pace.chosen = number

    def _take_or_leave(self) -> None:
        self.app.pop()
        self._watch.take_the_wheel(not self._watch.at_the_wheel)

    def _next(self) -> None:
        self.app.pop()
        self._watch.next_episode()

    def _leave(self) -> None:
        self.app.pop()
        self.app.pop()

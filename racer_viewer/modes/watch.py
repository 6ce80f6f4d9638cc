"""Watch: trained agents drive, episode after episode, with their observations, actions and rewards on screen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from racer_env.errors import in_one_line
from racer_viewer.agents import Agent, AgentError, load_agent
from racer_viewer.modes.circuits import fixed_circuits
from racer_viewer.modes.controls import NORMAL, SPEED_NAMES, SteeringInput
from racer_viewer.modes.correcting import Corrections, CorrectionsScreen
from racer_viewer.modes.drive import Drive
from racer_viewer.modes.episodes import MAX_EPISODES, EpisodesScreen, EpisodeTable, WatchedEpisode, watched_episode
from racer_viewer.modes.models import distinct_names
from racer_viewer.modes.race import (
    ANYWHERE,
    NO_ACTION,
    START_LINE,
    Entrant,
    RaceSetup,
    Restart,
    SetEntrant,
    SetFocus,
    SetStart,
    SetStochastic,
    TakeWheel,
    Tick,
)
from racer_viewer.modes.race_view import LiveRace, RaceView, save_to_replays
from racer_viewer.modes.screen import AppContext, MessageScreen, Screen
from racer_viewer.modes.settings_screen import SettingsScreen
from racer_viewer.modes.waiting import open_race
from racer_viewer.render.explanations import PANEL_EXPLANATIONS, Explanation
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Command, Controls, Intent
from racer_viewer.ui.item_list import Button, Choice, Item, toggle
from racer_viewer.ui.paint import ColouredWords
from racer_viewer.ui.theme import Palette
from racer_viewer.ui.views import Key, ListView

if TYPE_CHECKING:
    import pygame

MAX_CARS = 8
TABLE_INTERVAL = 15
"""Interval between two updates of the running episodes in the table [window ticks]."""
SKIPPED, LEFT, RUNNING = mark("skipped"), mark("left"), mark("running")
"""Endings of episodes that the user decides."""
MIN_RATE = 0.9
"""Share of the chosen speed below which the speed reached is shown."""
BAD_MODEL = mark("This model cannot be watched")


def open_watch(
    app: AppContext, models: Sequence[Path], circuit: str, stochastic: bool = False, stats: Path | None = None
) -> None:
    """Watch models race on a circuit; a model that cannot be loaded gives its reason on screen.

    stats: normalisation statistics of a single model, if they are not beside it.
    """
    try:
        entrants = entrants_of(models, app.theme.palette, stats)
    except (AgentError, OSError) as error:
        app.push(MessageScreen(app, _(BAD_MODEL), in_one_line(error)))
        return
    _notify_of_problems(app, entrants)
    setup = RaceSetup(circuit, entrants, bridge=app.bridge, stochastic=stochastic)
    open_race(app, setup, lambda drive: app.push(WatchScreen(app, setup, drive)))


def _notify_of_problems(app: AppContext, entrants: Sequence[Entrant]) -> None:
    """Show the first warning about an agent."""
    for entrant in entrants:
        if entrant.agent is not None and entrant.agent.info.problem is not None:
            app.notify(entrant.agent.info.problem)
            return


def entrants_of(models: Sequence[Path], palette: Palette, stats: Path | None = None) -> tuple[Entrant, ...]:
    """Load agents, each with its own colour; the first gets the player's. stats: those of a single model."""
    colours = (palette.player, *palette.cars)
    agents = [load_agent(path, stats) for path in models[:MAX_CARS]]
    names = distinct_names([agent.info.path for agent in agents])
    return tuple(
        Entrant(name, colours[number % len(colours)], agent)
        for number, (name, agent) in enumerate(zip(names, agents, strict=True))
    )


class WatchScreen(Screen):
    """Agents driving episode after episode, at any speed; the user may take the wheel.

    episodes: ended episodes of all cars, the newest last.
    number: number of the running episode, from 1.
    stochastic: agents sample their actions, as in training.
    anywhere: episodes start anywhere on the circuit.
    steering: what the user steers with at the wheel. corrections: what agents learn from that.
    """

    view: RaceView

    def __init__(self, app: AppContext, setup: RaceSetup, drive: Drive) -> None:
        super().__init__(app)
        self.live = LiveRace(self, setup, drive, self._take_race)
        self.view, self.playback = self.live.view, self.live.view.playback
        self._last = drive.first
        """Latest tick whose episodes have been considered."""
        self._wanted_circuit = setup.circuit
        """Circuit requested last; a server may not have it."""
        self.episodes: list[WatchedEpisode] = []
        self.number = 1
        self._episode, self._ending = 0, ""
        """Count of restarts requested, and the ending of the episode before the last of them."""
        self.at_wheel = self.anywhere = False
        self.stochastic = setup.stochastic
        self.steering, self.table = SteeringInput(), EpisodeTable()
        self.corrections = Corrections(app, self)
        self.running: tuple[WatchedEpisode, ...] = ()
        self._ticks = 0
        self._rate = _Rate()
        if self.stochastic:
            self._announce_stochastic(True)

    @property
    def setup(self) -> RaceSetup:
        return self.live.setup

    @property
    def focus(self) -> int:
        return self.view.after.focus

    @property
    def driver(self) -> str:
        """Name of the followed car's driver."""
        return self.setup.entrants[self.focus].name

    def keys(self) -> Sequence[Key]:
        key = self.app.key_label
        return (
            ("Esc", _("menu")),
            (key(Command.PAUSE), _("resume") if self.playback.paused else _("pause")),
            (f"{key(Command.SLOWER)} {key(Command.FASTER)}", _("speed")),
            (key(Command.TICK), _("one tick")),
            (key(Command.NEXT_EPISODE), _("next")),
            (key(Command.WHEEL), _("hand back") if self.at_wheel else _("take over")),
            *self.corrections.keys(),
            (key(Command.VARIATION), _("deterministic") if self.stochastic else _("stochastic")),
            *([(key(Command.NEXT_CAR), _("next car"))] if len(self.setup.entrants) > 1 else []),
            (f"{key(Command.PREVIOUS_CIRCUIT)} {key(Command.NEXT_CIRCUIT)}", _("circuit")),
            (key(Command.KEEP), _("save replay")),
            (key(Command.EPISODES), _("episodes")),
            *self.view.keys(),
        )

    def status(self) -> ColouredWords:
        """Return the left part of the status line."""
        palette, playback = self.app.theme.palette, self.playback
        driver = (
            _("You drive {driver}'s car").format(driver=self.driver)
            if self.at_wheel
            else _("{driver} drives").format(driver=self.driver)
        )
        speed = playback.name
        if not playback.paused and self._rate.share < MIN_RATE and playback.speed > 1.0:
            speed += _(" (here about {speed:.1f}×)").format(speed=playback.speed * self._rate.share)
        circuit = self.view.after.track.circuit
        return (
            (driver, palette.accent if self.at_wheel else palette.text),
            (_("paused") if playback.paused else speed, palette.accent if playback.paused else palette.text),
            (circuit.name if circuit else "", palette.faint),
            (_("episode {number}").format(number=self.number), palette.faint),
            (_("stochastic") if self.stochastic else _("deterministic"), palette.faint),
            *self.corrections.status(),
        )

    def handle(self, intent: Intent) -> None:
        if self.playback.handle(intent):
            return
        match intent:
            case Command.BACK:
                self.app.push(WatchMenu(self.app, self))
            case Command.NEXT_EPISODE | Command.RESTART:
                self.next_episode()
            case Command.WHEEL:
                self.take_wheel(not self.at_wheel)
            case Command.CORRECT:
                self.correct(not self.corrections.on)
            case Command.UNDO_CORRECTION:
                self.corrections.undo_last()
            case Command.VARIATION:
                self.set_stochastic(not self.stochastic)
            case Command.NEXT_CAR:
                self.follow((self.focus + 1) % len(self.setup.entrants))
            case Command.PREVIOUS_CIRCUIT | Command.NEXT_CIRCUIT:
                self.switch_circuit(1 if intent == Command.NEXT_CIRCUIT else -1)
            case Command.KEEP:
                save_to_replays(self.app, self.live.tick.followed.replay())
            case Command.EPISODES:
                self.view.toggle("episodes")
            case _:
                self.view.handle(intent)

    def tick(self, controls: Controls) -> None:
        due = self.playback.ticks()
        action = NO_ACTION
        if self.at_wheel:
            action = self.steering.update(controls, float(self.view.after.car["speed"]))
        driven = self.live.advance(due, action)
        for tick in driven:
            self._consider(tick)
        self.corrections.tick()
        if not driven:
            self.view.hold()
        self._rate.add(due, len(driven))
        if self._last.over and self._last.episode == self._episode:
            self._end_episode("")
        self._ticks += 1
        if self._ticks % TABLE_INTERVAL == 0:
            self._update_running()

    def next_episode(self) -> None:
        """Start the next episode without finishing this one."""
        self._end_episode(SKIPPED)

    def take_wheel(self, on: bool) -> None:
        """Drive the followed car, or let its agent continue."""
        if on == self.at_wheel:
            return
        self.at_wheel = on
        if on:
            self.corrections.wheel_taken()
        self.steering.release()
        self.live.drive.send(TakeWheel(on))
        if on:
            self.playback.paused, self.playback.chosen = False, NORMAL
        self.app.notify(_("You drive") if on else _("{driver} drives on").format(driver=self.driver))
        if not on:
            self.corrections.wheel_returned()

    def correct(self, on: bool) -> None:
        """Learn from what the user drives in the agent's place, or no longer."""
        if on and self.setup.bridge is not None:
            self.app.notify(_("Corrections are learned in races of this app only, not on a server"))
        else:
            self.corrections.switch(on)

    def agent_of(self, car: int) -> Agent | None:
        """Return the agent that drives a car."""
        return self.setup.entrants[car].agent

    def hand_to(self, car: int, agent: Agent) -> None:
        """Let another agent drive a car from the next tick on."""
        entrant = replace(self.setup.entrants[car], agent=agent)
        entrants = self.setup.entrants
        self.live.setup = replace(self.setup, entrants=(*entrants[:car], entrant, *entrants[car + 1 :]))
        self.live.drive.send(SetEntrant(car, entrant))

    def latest(self) -> Tick:
        """Return the latest tick of the race."""
        return self.live.tick

    def set_stochastic(self, on: bool) -> None:
        """Let agents sample their actions, or use the mean actions."""
        self.stochastic = on
        self.live.drive.send(SetStochastic(on))
        self._announce_stochastic(on)

    def start_anywhere(self, on: bool) -> None:
        """Start the next episodes anywhere on the circuit, or on the start line."""
        bridge = self.live.tick.bridge
        if on and bridge is not None and not bridge.telemetry:
            self.app.notify(_("This server starts episodes on the start line only"))
            return
        self.anywhere = on
        self.live.drive.send(SetStart(ANYWHERE if on else START_LINE))

    def follow(self, car: int) -> None:
        """Follow another car."""
        self.take_wheel(False)
        self.live.drive.send(SetFocus(car))

    def switch_circuit(self, by: int) -> None:
        """Go to the next or the previous circuit."""
        ids = list(fixed_circuits(self.app.data, self.setup.circuit))
        now = ids.index(self._wanted_circuit) if self._wanted_circuit in ids else -1
        self.go_to(ids[(now + by) % len(ids)])

    def go_to(self, circuit: str) -> None:
        """Continue on another circuit."""
        self._wanted_circuit = circuit
        self.live.reopen(replace(self.setup, circuit=circuit))

    def add_model(self, path: Path) -> bool:
        """Let a dropped model join the race."""
        self.join(path)
        return True

    def join(self, path: Path) -> None:
        """Add a model to the race."""
        if len(self.setup.entrants) >= MAX_CARS:
            self.app.notify(_("At most {limit} cars can race").format(limit=MAX_CARS))
            return
        try:
            agent = load_agent(path)
        except (AgentError, OSError) as error:
            self.app.push(MessageScreen(self.app, _(BAD_MODEL), in_one_line(error)))
            return
        others, palette = self.setup.entrants, self.app.theme.palette
        colour = palette.cars[(len(others) - 1) % len(palette.cars)]
        paths = [each.agent.info.path for each in others if each.agent is not None]
        name = distinct_names([*paths, agent.info.path])[-1]
        entrant = Entrant(name, colour, agent)
        _notify_of_problems(self.app, [entrant])
        self.live.reopen(replace(self.setup, entrants=(*others, entrant)))

    def all_episodes(self) -> list[WatchedEpisode]:
        """Return the ended episodes and those that are running."""
        running = [watched_episode(state, self.number, RUNNING) for state in self.live.tick.episodes if state.ticks]
        return [*self.episodes, *running]

    def explanations(self) -> Sequence[Explanation]:
        table = (PANEL_EXPLANATIONS["episodes"],) if "episodes" in self.view.shown_overlays else ()
        return (*table, *super().explanations())

    def draw_ahead(self) -> bool:
        return self.view.draw_ahead()

    def draw(self, surface: pygame.Surface, share: float) -> None:
        status = self.status()
        self.live.draw(surface, share, self.keys(), status)
        if self.app.top is self and "episodes" in self.view.shown_overlays:
            top = self.live.reserved_height(status)
            table = self.table.draw(surface, self.app.theme, self.episodes, self.running, top)
            camera = self.view.camera
            camera.insets = camera.insets._replace(top=table.bottom)

    def on_close(self) -> None:
        super().on_close()
        self.corrections.close()
        self.live.close()

    def _take_race(self, last: Tick) -> None:
        """Continue with another race; `last` is the last tick of the one before."""
        self.corrections.wheel_returned(last)
        self._add_episodes(last, LEFT)
        self._last, self._episode = self.live.tick, 0
        self.at_wheel = False
        drive, circuit = self.live.drive, self.setup.circuit
        drive.send(SetStochastic(self.stochastic))
        drive.send(SetStart(ANYWHERE if self.anywhere else START_LINE))
        if circuit != self.app.settings.circuit:
            self.app.change(circuit=circuit)
        self._update_running()

    def _end_episode(self, ending: str) -> None:
        """Start the next episode; its seed is the number of this one."""
        self.take_wheel(False)
        self._ending = ending
        self._episode += 1
        self.live.drive.send(Restart(self.number))

    def _consider(self, tick: Tick) -> None:
        """Record the episodes that ended before this tick."""
        if tick.episode != self._last.episode:
            self._add_episodes(self._last, self._ending)
        self._last = tick

    def _add_episodes(self, last: Tick, ending: str) -> None:
        ended = [watched_episode(state, self.number, ending) for state in last.episodes if state.ticks]
        self.episodes = [*self.episodes, *ended][-MAX_EPISODES:]
        self.number += bool(ended)
        self.running = ()

    def _update_running(self) -> None:
        self.running = tuple(watched_episode(state, self.number) for state in self.live.tick.episodes)

    def _announce_stochastic(self, on: bool) -> None:
        fixed = [each.name for each in self.setup.entrants if each.agent is not None and not each.agent.noise_shape]
        if on and fixed:
            self.app.notify(
                _("{names}: this kind of model always acts deterministically").format(names=", ".join(fixed))
            )
        else:
            self.app.notify(
                _("Stochastic: actions are sampled, as in training") if on else _("Deterministic: mean actions")
            )


class _Rate:
    """Share of the requested ticks that were simulated, measured once a second."""

    def __init__(self) -> None:
        self.share = 1.0
        self._requested, self._driven, self._since = 0, 0, time.monotonic()

    def add(self, requested: int, driven: int) -> None:
        self._requested += requested
        self._driven += driven
        now = time.monotonic()
        if now - self._since >= 1.0:
            self.share = self._driven / self._requested if self._requested else 1.0
            self._requested, self._driven, self._since = 0, 0, now


class WatchMenu(Screen):
    """Menu over a paused race: everything that can be done while watching, without the keyboard."""

    def __init__(self, app: AppContext, watch: WatchScreen) -> None:
        self._watch = watch
        here = watch.setup.circuit
        names = {found: circuit.name for found, circuit in fixed_circuits(app.data, here).items()}
        names.setdefault(here, here)
        self._circuits = list(names)
        self._here = self._circuits.index(here)
        self._circuit = Choice(
            _("Circuit"),
            _("All cars start there when you resume"),
            options=list(names.values()),
            chosen=self._here,
        )
        drivers = ", ".join(entrant.name for entrant in watch.setup.entrants)
        super().__init__(app, ListView(_("Watch"), self._items(app, watch), subtitle=drivers, darkness=150))

    def back(self) -> None:
        """Resume, on another circuit if one was chosen."""
        super().back()
        if self._circuit.chosen != self._here:
            self._watch.go_to(self._circuits[self._circuit.chosen])

    def _items(self, app: AppContext, watch: WatchScreen) -> list[Item]:
        wheel = _("Hand back") if watch.at_wheel else _("Take over")
        return [
            Button(_("Resume"), on_press=self.back),
            Button(wheel, _("The agent continues from where you leave the car"), on_press=self._switch_driver),
            toggle(
                _("Learn from my corrections"),
                watch.corrections.on,
                watch.correct,
                _("Take over where the agent is wrong, then hand back: it learns what you did"),
            ),
            *(
                [
                    Button(
                        _("Corrections"),
                        _("Each can be undone"),
                        on_press=self._list_corrections,
                        note=str(session.count),
                    )
                ]
                if (session := watch.corrections.session) is not None and session.count
                else []
            ),
            Button(_("Next episode"), on_press=self._next),
            Choice(_("Speed"), options=SPEED_NAMES, chosen=watch.playback.chosen, on_change=self._change_speed),
            self._circuit,
            Choice(
                _("Actions"),
                _("Stochastic actions are sampled, as in training"),
                options=(_("deterministic"), _("stochastic")),
                chosen=int(watch.stochastic),
                on_change=lambda number: watch.set_stochastic(bool(number)),
            ),
            toggle(
                _("Start anywhere"),
                watch.anywhere,
                watch.start_anywhere,
                _("The next episodes start anywhere on the circuit"),
            ),
            Button(_("Episodes"), _("Watch an episode again or save it"), on_press=self._list_episodes),
            Button(_("Settings"), on_press=lambda: app.push(SettingsScreen(app))),
            Button(_("Leave"), on_press=self._leave),
        ]

    def _change_speed(self, number: int) -> None:
        self._watch.playback.chosen = number

    def _switch_driver(self) -> None:
        self.app.pop()
        self._watch.take_wheel(not self._watch.at_wheel)

    def _next(self) -> None:
        self.app.pop()
        self._watch.next_episode()

    def _list_episodes(self) -> None:
        self.app.push(EpisodesScreen(self.app, self._watch.all_episodes()))

    def _list_corrections(self) -> None:
        session = self._watch.corrections.session
        if session is not None:
            self.app.push(CorrectionsScreen(self.app, self._watch.corrections, session))

    def _leave(self) -> None:
        self._watch.corrections.leave(self._close)

    def _close(self) -> None:
        self.app.pop()
        self.app.pop()

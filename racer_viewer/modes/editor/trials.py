"""Agents on the circuit that is being edited, beside the canvas: the champion, or a run that learns there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pygame

from racer_env.engine import TICKS_PER_SECOND, Circuit, Track, load_circuit
from racer_env.errors import RacerError, in_one_line
from racer_viewer.agents import CHAMPION, load_agent, models_folder
from racer_viewer.circuits.library import DEFAULT_NAME
from racer_viewer.modes.drive import Drive, open_drive
from racer_viewer.modes.editor.document import CircuitDocument
from racer_viewer.modes.ladder import take_measured_laps
from racer_viewer.modes.models import ModelLaps, ModelTimer
from racer_viewer.modes.race import ENDLESS, NO_ACTION, Entrant, RaceSetup, Restart, Tick
from racer_viewer.modes.race_view import RaceView
from racer_viewer.modes.screen import Screen
from racer_viewer.modes.train.panels import STATE_NAMES, TrainLayout
from racer_viewer.modes.train.pictures import TrainPictures, TrainPictureState
from racer_viewer.modes.train.showcase import LIVE, Showcase, ShownPolicy, steps_in_words
from racer_viewer.modes.waiting import BackgroundTask
from racer_viewer.replays.records import medals_of
from racer_viewer.run_history import RunHistory, Swarm
from racer_viewer.training.config import preset
from racer_viewer.training.run_monitor import RunMonitor
from racer_viewer.translation import _
from racer_viewer.ui.theme import Colour

STEPS = 500_000
"""Environment steps of a run: an agent that laps cleanly, within half a minute."""
EVALUATE_EVERY = 50_000
"""Environment steps between two evaluations, which find the first clean lap; on one circuit they are quick."""
SETTLED_TICKS = 20
"""Time for which a circuit must rest until agents get it [ticks]."""
MAX_STOP_TICKS = 120
"""Time for which a car may stand until it starts again [ticks]."""
CURVES_SHARE = 0.45
"""Share of the height that the curves take below the driving agent."""
HALF_DIGIT = 0.005
"""Half of the last digit of a lap time [s]."""
Row = tuple[str, str, Colour]


class Settled:
    """Circuit that was changed, can be driven and rests. circuit: the one that was taken last."""

    def __init__(self, document: CircuitDocument) -> None:
        self._document = document
        self.circuit: Circuit | None = None
        self._draft = document.draft
        self._ticks = SETTLED_TICKS

    def take(self) -> tuple[Circuit, Track] | None:
        """Return a circuit that was not taken before, at most once; call it once per tick."""
        document = self._document
        self._ticks = self._ticks + 1 if document.draft is self._draft else 0
        self._draft = document.draft
        track = document.preview.track
        if self._ticks < SETTLED_TICKS or not document.drivable or track is None:
            return None
        circuit = circuit_of(document)
        if self.circuit is not None and _same_road(self.circuit, circuit):
            return None
        self.circuit = circuit
        return circuit, track


def circuit_of(document: CircuitDocument) -> Circuit:
    """Return the circuit as agents get it."""
    return replace(document.draft, name=document.draft.name or DEFAULT_NAME).to_circuit(
        document.circuit_id or "drawing"
    )


def _same_road(first: Circuit, second: Circuit) -> bool:
    return (first.control_points, first.gates) == (second.control_points, second.gates)


class CircuitTrial(Protocol):
    """Agents on the circuit, shown beside the canvas."""

    @property
    def cars(self) -> Swarm | None:
        """Cars to draw on the canvas."""
        ...

    @property
    def clean_lap(self) -> float | None:
        """Best clean lap on the circuit as it is now [s]."""
        ...

    def rows(self) -> list[Row]:
        """Return what is known of their laps."""
        ...

    def tick(self) -> None: ...

    def draw(self, surface: pygame.Surface, share: float) -> None: ...

    def draw_ahead(self) -> bool: ...

    def close(self) -> None: ...


class ChampionTrial:
    """The champion drives in real time, while its lap times are measured faster."""

    cars = None

    def __init__(self, screen: Screen, document: CircuitDocument) -> None:
        """Raises AgentError if the champion cannot be loaded."""
        self._screen, self._app, self._document = screen, screen.app, document
        self._path = models_folder() / f"{CHAMPION}.zip"
        self._agent = load_agent(self._path)
        self._timer, self._settled = ModelTimer(screen.app.data), Settled(document)
        self._opening: BackgroundTask[Drive] | None = None
        self._drive: Drive | None = None
        self._tick: Tick | None = None
        self._still = 0
        self._view: RaceView | None = None

    @property
    def clean_lap(self) -> float | None:
        facts = self._timer.facts.get(self._path)
        return facts.laps.flying if facts is not None and facts.laps is not None and facts.laps.clean else None

    def tick(self) -> None:
        """Drive on; begin anew on a changed circuit."""
        self._timer.pause()
        changed = self._settled.take()
        if changed is not None:
            circuit, track = changed
            palette = self._app.theme.palette
            entrants = (Entrant(_("Champion"), palette.player, self._agent),)
            setup = RaceSetup("", entrants, config=ENDLESS, track=track)
            self._opening = BackgroundTask(lambda: open_drive(setup), "racer-editor-champion")
            self._timer.start([self._path], circuit)
        if self._opening is not None and self._opening.done:
            self._take_drive(self._opening.result())
            self._opening = None
        facts = self._timer.facts.get(self._path)
        if facts is not None and facts.laps is not None and self._settled.circuit is not None:
            take_measured_laps(self._settled.circuit, facts.laps)
        if self._drive is not None and self._view is not None:
            for tick in self._drive.advance(1, NO_ACTION):
                self._tick = tick
                self._view.show(tick.snapshot)
                self._still = self._still + 1 if float(tick.snapshot.car["speed"]) < 1.0 else 0
            if self._still > MAX_STOP_TICKS:
                self._still = 0
                self._drive.send(Restart())

    def rows(self) -> list[Row]:
        palette, facts = self._app.theme.palette, self._timer.facts.get(self._path)
        if facts is None or (facts.laps is None and not facts.problem):
            return [(_("Champion"), _("measuring"), palette.faint)]
        if facts.laps is None or facts.laps.flying is None:
            return [(_("Champion"), _("no lap"), palette.bad)]
        if not facts.laps.clean:
            text = _("{seconds:.2f} s, leaves the road").format(seconds=facts.laps.flying)
            return [(_("Champion"), text, palette.bad)]
        return [(_("Champion"), _("{seconds:.2f} s, clean").format(seconds=facts.laps.flying), palette.good)]

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme = self._app.theme
        if self._view is None:
            surface.fill(theme.palette.panel[:3])
        else:
            self._view.draw(surface, share)
        self._timer.resume()

    def draw_ahead(self) -> bool:
        return self._view is not None and self._view.draw_ahead()

    def close(self) -> None:
        self._timer.stop()
        if self._opening is not None:
            self._opening.cancel(lambda drive: drive.close())
        if self._drive is not None:
            self._drive.close()

    def _take_drive(self, drive: Drive) -> None:
        if self._drive is not None:
            self._drive.close()
        self._drive, self._tick, self._still = drive, drive.first, 0
        self._view = shown_in(self._view, self._screen, drive.first)


def shown_in(view: RaceView | None, screen: Screen, first: Tick) -> RaceView:
    """Return the view of a race beside the canvas, which begins at a tick; it is made if there is none."""
    if view is None:
        view = RaceView(screen, first.snapshot)
        view.own_overlays = ()
    else:
        view.begin_at(first.snapshot, show_keys=False)
    return view


class TrainingTrial:
    """A run that learns on the circuit: its newest policy, its curves, and its cars on the canvas.

    When the circuit is edited, the cars move to the new one at their next start.
    """

    def __init__(self, screen: Screen, document: CircuitDocument, notify: Callable[[str], None]) -> None:
        """Start the run. Raises RacerError or OSError if that is not possible."""
        self._screen, self._app, self._notify = screen, screen.app, notify
        self._settled = Settled(document)
        circuit = circuit_of(document)
        self._settled.circuit = circuit
        config = replace(preset("ppo"), tracks=(circuit.id,), timesteps=STEPS, evaluate_every=EVALUATE_EVERY)
        self.run = RunMonitor.start(config, screen.app.data / "runs", circuit=circuit)
        self._showcase = self._new_showcase()
        self._circuit = self.run.config.circuits[0]
        self._policy = ShownPolicy(self.run, self._showcase, notify)
        self._view = shown_in(None, screen, self._showcase.tick)
        self._pictures = TrainPictures(screen.app)
        self._loading: BackgroundTask[Track] | None = None
        self.kept = False
        """True if the run learns on in the background when this is closed."""

    @property
    def is_live(self) -> bool:
        return self.run.state in LIVE

    @property
    def cars(self) -> Swarm | None:
        return self.run.swarm() if self.is_live else None

    @property
    def clean_lap(self) -> float | None:
        shown, now = self._showcase.track.circuit, self._settled.circuit
        if shown is None or now is None or not _same_road(shown, now):
            return None  # the cars still drive on the circuit before the last edit
        best, history = self._showcase.tick.followed.best, self.run.history
        changes = [event.steps for event in history.events if event.kind == "circuit"]
        evaluated = _clean_laps(history, max(changes, default=-1))
        laps = [*evaluated, *([best.ticks / TICKS_PER_SECOND] if best is not None else [])]
        return min(laps, default=None)

    def tick(self) -> None:
        """Follow the run; give it a circuit that was changed."""
        changed = self._settled.take()
        if changed is not None and self.is_live:
            try:
                self.run.set_circuit(changed[0])
            except RacerError as error:
                self._notify(in_one_line(error))
        self._move_to_circuit()
        self._policy.tick()
        self._view.show(self._showcase.step(NO_ACTION))
        self._propose_medals()

    def rows(self) -> list[Row]:
        palette, lap = self._app.theme.palette, self.clean_lap
        if self.run.state == "starting":
            return [(_("Agent"), _("starting"), palette.faint)]
        clean = _("no clean lap yet") if lap is None else _("{seconds:.2f} s, clean").format(seconds=lap)
        steps = _("{steps} steps").format(steps=steps_in_words(self.run.steps))
        return [
            (_("Agent"), steps if self.is_live else _(STATE_NAMES[self.run.state]), palette.text),
            (_("Its best lap"), clean, palette.faint if lap is None else palette.good),
        ]

    def draw(self, surface: pygame.Surface, share: float) -> None:
        theme, (width, height) = self._app.theme, surface.get_size()
        lower = round(height * CURVES_SHARE)
        self._showcase.set_palette(theme.palette)
        self._view.draw(surface.subsurface((0, 0, width, height - lower)), share)
        state = TrainPictureState(self._showcase.track, self._circuit, 0, [self.run.history], None, 0.6, None)
        self._pictures.begin()
        self._pictures.draw(surface, {TrainLayout.CURVES: pygame.Rect(0, height - lower, width, lower)}, state)

    def draw_ahead(self) -> bool:
        return self._view.draw_ahead() or self._pictures.draw_ahead([TrainLayout.CURVES])

    def close(self) -> None:
        if self.kept and self.is_live:
            self.run.detach()
        self.run.close()
        self._showcase.close()

    def _move_to_circuit(self) -> None:
        """Show the circuit on which the cars start now, as soon as it is built."""
        now = self.run.config.circuits[0]
        if self._loading is None and now != self._circuit:
            self._circuit = now
            self._loading = BackgroundTask(lambda: _loaded(now), "racer-editor-circuit")
        if self._loading is not None and self._loading.done:
            self._loading = None
            self._showcase.close()
            self._showcase = self._new_showcase()
            self._policy.move_to(self._showcase)
            self._view = shown_in(self._view, self._screen, self._showcase.tick)

    def _propose_medals(self) -> None:
        """Let the agent's lap decide the medals, if it is faster than the one that did so far."""
        circuit, lap = self._settled.circuit, self.clean_lap
        if circuit is None or lap is None:
            return
        known = medals_of(circuit)
        if known is None or known.author is None or lap < known.author - HALF_DIGIT:
            take_measured_laps(circuit, ModelLaps(None, lap, clean=True))

    def _new_showcase(self) -> Showcase:
        config, palette = self.run.config, self._app.theme.palette
        return Showcase(config.circuits[0], config, config.rewards, palette, self._app.settings.name)


def _clean_laps(history: RunHistory, since: int) -> list[float]:
    """Return the flying laps of evaluations without a fault after some steps [s]."""
    clean = history.values.get("eval/clean_circuits")
    if clean is None:
        return []
    chosen = (history.steps > since) & (clean >= 1.0)
    laps = (values[chosen] for name, values in history.values.items() if name.startswith("eval/lap_"))
    return [float(lap) for each in laps for lap in each if lap > 0.0]


def _loaded(circuit: str) -> Track:
    """Build a circuit with all tables; `load_circuit` keeps it for a while."""
    track = load_circuit(circuit)
    assert track.tables, "built here, in the background"
    return track

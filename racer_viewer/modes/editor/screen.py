"""The editor of circuits: draw, drag, drive and save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pygame

from racer_env.errors import RacerError, in_one_line
from racer_viewer.circuits.draft import Draft, set_medals, set_text
from racer_viewer.circuits.library import CircuitLibrary
from racer_viewer.modes.editor.actions import ACTIONS, EditorAction, action_named, action_of, hint_of
from racer_viewer.modes.editor.canvas import Canvas
from racer_viewer.modes.editor.document import CircuitDocument
from racer_viewer.modes.editor.menu import EditorMenu, LeaveEditorScreen, NameCircuitScreen
from racer_viewer.modes.editor.mouse import EditorMouse, Tool
from racer_viewer.modes.editor.panels import CIRCUIT_EXPLANATION, FactsPanel, ToolBar
from racer_viewer.modes.editor.testdrive import open_test_drive
from racer_viewer.modes.editor.trials import ChampionTrial, CircuitTrial, TrainingTrial
from racer_viewer.modes.screen import AppContext, Screen
from racer_viewer.modes.train.setup import open_run
from racer_viewer.modes.waiting import open_when_loaded, when_ready
from racer_viewer.render.camera import Insets
from racer_viewer.render.explanations import Explanation, draw_explanation
from racer_viewer.replays.records import medals_of
from racer_viewer.translation import _, mark
from racer_viewer.ui.intents import Click, Command, Controls, Intent, KeyPress, MouseMove
from racer_viewer.ui.paint import FOOTER_HEIGHT
from racer_viewer.ui.theme import MARGIN, Colour
from racer_viewer.ui.views import HintCard, Key, draw_keys

NUDGE, NUDGE_FINE = 10.0, 1.0
"""Distance by which an arrow key moves points, without and with Shift [units]."""
PAN_STEP = 48
"""Distance by which an arrow key moves the view, at scale 1 [px]."""
CURSOR_STEP = 14
"""Distance by which a gamepad moves its cursor, at scale 1 [px]."""
HOVER_TICKS = 24
"""Time for which the mouse rests on a button until it is explained [ticks]."""
DIRECTIONS = {Command.LEFT: (-1, 0), Command.RIGHT: (1, 0), Command.UP: (0, 1), Command.DOWN: (0, -1)}
MIN_TRIAL_HEIGHT = 60
"""Smallest height in which agents are shown below the facts, at scale 1 [px]."""
SIDE_SHARE = 0.34
"""Part of the width that agents beside the canvas take."""
MOUSE_KEYS: tuple[Key, ...] = (
    (mark("Wheel"), mark("Zoom; over a point, its width")),
    (mark("Right-click"), mark("Delete a point; drag moves the view")),
    (mark("Middle"), mark("Move the view")),
    ("Space", mark("With the left button: move the view")),
    ("Shift", mark("Select several points")),
    ("Ctrl", mark("Snap while dragging, or not")),
)
PAD_KEYS: tuple[Key, ...] = (
    ("Stick", mark("Move the cursor")),
    ("A", mark("Take, drop, or draw")),
    ("X", mark("Delete points")),
    ("Y", mark("Insert a point")),
    ("LB RB", mark("Narrower, wider")),
    ("B or Start", mark("Menu with all commands")),
)
PAD_ACTIONS = {
    Command.RESTART: "delete",
    Command.CAMERA: "insert",
    Command.PUT_BACK: "narrower",
    Command.RAYS: "wider",
}
"""Buttons of a gamepad and the commands that they give."""


class EditorScreen(Screen):
    """A canvas on which a circuit is drawn, with a tool bar at the left and its facts at the right."""

    uses_right_button = True

    def __init__(self, app: AppContext, draft: Draft, circuit_id: str | None = None) -> None:
        super().__init__(app)
        self.document = CircuitDocument(draft, circuit_id)
        self.library = CircuitLibrary(app.data)
        self.canvas = Canvas(self.document)
        self.mouse = EditorMouse(self.document, self.canvas, lambda: app.theme)
        self.bar, self.facts = ToolBar(), FactsPanel()
        self.grid = False
        self.hovered: EditorAction | None = None
        """Command of the button below the mouse."""
        self._hover_ticks = 0
        self._on_facts = False
        """True if the mouse was moved onto the facts where they are now."""
        self.shift_held = False
        """True if Shift was held with the key that was pressed last."""
        self._last_key = ""
        self._problem = -1
        """Index of the problem that was shown last."""
        self.trial: CircuitTrial | None = None
        """Agents that drive beside the canvas."""
        self._fits = False
        """True if the circuit was fitted into the canvas since that changed."""

    @property
    def dirty(self) -> bool:
        """True if there is something to save."""
        return self.document.history.dirty and bool(self.document.points)

    @property
    def learns(self) -> bool:
        """True if an agent learns beside the canvas."""
        return isinstance(self.trial, TrainingTrial) and self.trial.is_live

    def keep_learning(self, on: bool) -> None:
        """Let the agent learn on when the editor is closed, or not."""
        if isinstance(self.trial, TrainingTrial):
            self.trial.kept = on

    def keys(self) -> Sequence[Key]:
        chosen = bool(self.document.selected)
        names = ("undo", "delete", "insert", "wider", "start") if chosen else ("undo", "edit", "freehand", "points")
        wheel = (_("Wheel"), _("width") if self.mouse.target.kind in ("point", "width") else _("zoom"))
        return (
            ("Esc", _("menu")),
            *((action_named(name).cap, _(action_named(name).label)) for name in names),
            wheel,
            ("?", _("explain")),
            ("F1", _("all keys")),
        )

    def explanations(self) -> Sequence[Explanation]:
        commands = (Explanation(action.label, action.hint) for action in ACTIONS if action.hint)
        return (CIRCUIT_EXPLANATION, *commands)

    def repeats(self, direction: Command) -> bool:
        return True

    def handle(self, intent: Intent) -> None:
        match intent:
            case MouseMove(x, y):
                self._hover(x, y)
            case Click(x, y) if self.bar.area.collidepoint(x, y):
                action = self.bar.action_at(x, y)
                if action is not None:
                    self.run(action)
                return
            case Click(x, y) if self.facts.area.collidepoint(x, y) or x >= self.canvas.camera.size[0]:
                return
            case KeyPress():
                self._press_key(intent)
                return
            case Command():
                self._command(intent)
                return
        self.mouse.handle(intent)

    def run(self, action: EditorAction) -> None:
        """Carry out a command, if it is available."""
        if action.available(self):
            self.mouse.cancel()
            action.run(self)

    def undo(self) -> None:
        label = self.document.undo()
        if label:
            self.app.notify(_("Undone: {edit}").format(edit=_(label)))

    def redo(self) -> None:
        label = self.document.redo()
        if label:
            self.app.notify(_("Done again: {edit}").format(edit=_(label)))

    def toggle_grid(self) -> None:
        self.grid = not self.grid

    def toggle_snap(self) -> None:
        """Let points snap to the grid, which is shown then, or not."""
        self.document.snaps = not self.document.snaps
        self.grid = self.grid or self.document.snaps

    def move_start(self) -> None:
        """Move the start line to the selected point, or to the place on the line nearest to the mouse."""
        document = self.document
        if document.selected:
            document.start_at(document.preview.arc_of_point(min(document.selected)))
        elif self.mouse.position is not None:
            nearest = document.preview.nearest_arc(*self.canvas.camera.view.to_world(*self.mouse.position))
            if nearest is not None:
                document.start_at(nearest[0])

    def show_all(self) -> None:
        """Show the whole circuit beside the panels."""
        self.canvas.camera.fit(self.document.points, self._insets())
        if self.mouse.position is not None and not self.mouse.busy:
            self.mouse.hover(*self.mouse.position)

    def show_next_problem(self) -> None:
        """Move the view to the next problem."""
        problems = self.document.problems
        if problems:
            self._problem = (self._problem + 1) % len(problems)
            self.canvas.camera.x, self.canvas.camera.y = problems[self._problem].x, problems[self._problem].y

    def name(self) -> None:
        """Ask for the name of the circuit."""
        self.app.push(NameCircuitScreen(self.app, self.document.draft.name, self.rename))

    def rename(self, name: str) -> None:
        self.document.do(set_text(self.document.draft, name=name), mark("name"))

    def save(self, then: Callable[[], None] = lambda: None) -> None:
        """Save the circuit, as a draft if it cannot be driven; `then` is called if it was saved."""
        document = self.document
        medals = medals_of(document.draft.to_circuit())
        if document.drivable and document.draft.medals is None and medals is not None:
            document.do(set_medals(document.draft, medals), mark("medals"))
        try:
            entry = self.library.save(document.draft, document.circuit_id)
        except (RacerError, OSError) as error:
            self.app.notify(in_one_line(error))
            return
        document.circuit_id = entry.id
        if entry.circuit is not None and entry.circuit.name != document.draft.name:
            self.rename(entry.circuit.name)
        document.history.saved()
        text = (
            _("Saved as draft: {name} has problems and cannot be driven yet") if entry.is_draft else _("Saved: {name}")
        )
        self.app.notify(text.format(name=entry.name))
        then()

    def back(self) -> None:
        """End what is being drawn or, without that, open the menu."""
        if not self.mouse.cancel() and self.mouse.tool is not Tool.POINTS:
            self.app.push(EditorMenu(self.app, self))
        elif self.mouse.tool is Tool.POINTS:
            self.mouse.use(Tool.EDIT)

    def leave(self) -> None:
        """Close the editor, after a question if there are changes that were not saved."""
        question = self.confirm_close(self.app.pop)
        if question is None:
            self.app.pop()
        else:
            self.app.push(question)

    def confirm_close(self, then: Callable[[], None]) -> Screen | None:
        return LeaveEditorScreen(self.app, self, then) if self.dirty or self.learns else None

    def test_drive(self, from_cursor: bool) -> None:
        """Drive the circuit from the start line, or from the place on the line nearest to the mouse."""
        track, place = self.document.preview.track, self.mouse.position
        nearest = None
        if from_cursor and place is not None:
            nearest = self.document.preview.nearest_arc(*self.canvas.camera.view.to_world(*place))
        if track is not None:
            open_test_drive(self.app, track, nearest[0] if nearest is not None else 0.0)

    @property
    def champion_drives(self) -> bool:
        return isinstance(self.trial, ChampionTrial)

    @property
    def trains(self) -> bool:
        return isinstance(self.trial, TrainingTrial)

    def toggle_champion(self) -> None:
        """Let the champion drive beside the canvas, or no longer."""
        self._try(None if self.champion_drives else lambda: ChampionTrial(self, self.document))

    def toggle_training(self) -> None:
        """Train an agent on the circuit, or stop that and save the run."""
        self._try(None if self.trains else lambda: TrainingTrial(self, self.document, self.app.notify))

    def open_training(self) -> None:
        """Show the run with all its charts; it is no longer shown here."""
        if isinstance(self.trial, TrainingTrial):
            run = self.trial.run
            self.trial.kept = True
            self._try(None)
            open_run(self.app, run.folder)

    def _try(self, begin: Callable[[], CircuitTrial] | None) -> None:
        """Close what is beside the canvas, and show something else there."""
        self._on_facts = False
        if self.trial is not None:
            self.trial.close()
            self.trial = None
            self._fits = False
        if begin is not None:
            when_ready(self.app, lambda: self._begin(begin))

    def _begin(self, begin: Callable[[], CircuitTrial]) -> None:
        try:
            self.trial = begin()
        except (RacerError, OSError) as error:
            self.app.notify(in_one_line(error))
        self._fits = False

    def trial_rows(self) -> Sequence[tuple[str, str, Colour]]:
        """Return what is known of the laps of an agent."""
        return () if self.trial is None else self.trial.rows()

    def tick(self, controls: Controls) -> None:
        self.document.tick()
        if self.trial is not None:
            self.trial.tick()
        self._hover_ticks += 1

    def draw_ahead(self) -> bool:
        return (self.trial is not None and self.trial.draw_ahead()) or self.canvas.ground.draw_ahead()

    def on_close(self) -> None:
        super().on_close()
        if self.trial is not None:
            self.trial.close()

    def key_groups(self) -> Sequence[tuple[str, Sequence[Key]]]:
        groups = dict.fromkeys(action.group for action in ACTIONS)
        keys = {group: [(each.cap, each.label) for each in ACTIONS if each.group == group] for group in groups}
        mouse = [(_(key), does) for key, does in MOUSE_KEYS]
        return (*((_(group), keys[group]) for group in groups), (_("Mouse"), mouse), (_("Gamepad"), PAD_KEYS))

    def draw(self, surface: pygame.Surface, share: float) -> None:
        footer = self.app.theme.px(FOOTER_HEIGHT)
        width, height = surface.get_size()
        side = 0 if self.trial is None else round(width * SIDE_SHARE)
        self._draw_canvas(surface.subsurface((0, 0, width - side, height)))
        if self.trial is not None:
            self._draw_side(surface.subsurface((width - side, 0, side, height - footer)), share)
            surface.fill(self.app.theme.palette.panel[:3], (0, height - footer, width, footer))
        if self.app.top is self:
            draw_keys(surface, self.app.theme, self.keys(), self.app.theme.px(self.app.sign_width))

    def _draw_side(self, surface: pygame.Surface, share: float) -> None:
        """Draw the facts and, below them, the agents."""
        theme = self.app.theme
        assert self.trial is not None
        surface.fill(theme.palette.panel[:3])
        width, height = surface.get_size()
        if self.app.top is self:
            self.facts.draw(surface, theme, self, surface.get_rect(), fills=True)
        top = self.facts.area.bottom
        self.facts.area.x += self.canvas.camera.size[0]
        if height - top >= theme.px(MIN_TRIAL_HEIGHT):
            self.trial.draw(surface.subsurface((0, top, width, height - top)), share)

    def _draw_canvas(self, surface: pygame.Surface) -> None:
        theme, on_top = self.app.theme, self.app.top is self
        area = surface.get_rect()
        self.canvas.camera.size = area.size
        margin, footer = theme.px(MARGIN), theme.px(FOOTER_HEIGHT)
        panels = pygame.Rect(margin, margin, area.width - 2 * margin, area.height - 2 * margin - footer)
        if not self._fits:
            self.bar.draw(surface, theme, self, panels)
            if self.trial is None:
                self.facts.draw(surface, theme, self, panels)
            self._fits = True
            self.show_all()
        cursor = self.mouse.position if self.app.gamepad else None
        cars = None if self.trial is None else self.trial.cars
        drawing = replace(self.mouse.drawing(), cursor=cursor, grid=self.grid, cars=cars)
        keys = pygame.Rect(0, area.bottom - footer, area.width, footer)
        self.canvas.draw(surface, theme, drawing, (self.bar.area, self.facts.area, keys) if on_top else ())
        if not on_top:
            return
        self.bar.draw(surface, theme, self, panels)
        if self.trial is None:
            self.facts.draw(surface, theme, self, panels)
        if not self.document.points and not self.mouse.busy:
            self._draw_hint(surface, panels)
        self._draw_explanation(surface)

    def _insets(self) -> Insets:
        theme = self.app.theme
        right = self.canvas.camera.size[0] - self.facts.area.left if self.trial is None else 0
        return Insets(self.bar.area.right, 0, right, theme.px(FOOTER_HEIGHT))

    def _draw_hint(self, surface: pygame.Surface, panels: pygame.Rect) -> None:
        """Explain how to begin on an empty canvas."""
        keys = ((_("Drag"), _("a whole lap")), (_("Click"), _("point by point")))
        card = HintCard(keys, _("Draw your circuit. It becomes a smooth road with walls and gates at once."))
        left = self.bar.area.right + panels.left
        free = pygame.Rect(left, panels.top, self.facts.area.left - panels.left - left, panels.height)
        card.draw(surface, self.app.theme, free.inflate(0, -free.height // 3))

    def _draw_explanation(self, surface: pygame.Surface) -> None:
        if self._hover_ticks < HOVER_TICKS:
            return
        theme, action = self.app.theme, self.hovered
        if action is not None and hint_of(action):
            draw_explanation(surface, theme, Explanation(action.label, action.hint), self.bar.rects[action.name])
        elif self._on_facts:
            draw_explanation(surface, theme, CIRCUIT_EXPLANATION, self.facts.area)

    def _hover(self, x: int, y: int) -> None:
        below = self.bar.action_at(x, y) if self.bar.area.collidepoint(x, y) else None
        self._on_facts = bool(self.facts.area.collidepoint(x, y))
        if below is not self.hovered or not (below or self._on_facts):
            self._hover_ticks = 0
        self.hovered = below

    def _press_key(self, press: KeyPress) -> None:
        self._last_key, self.shift_held = press.key, press.modifiers.shift
        action = action_of(press)
        if action is not None:
            self.run(action)

    def _command(self, command: Command) -> None:
        """Handle a command that is not bound to a key of the editor, or that a gamepad gives."""
        if command == Command.BACK and self._last_key != "backspace":
            self.back()
        elif self.app.gamepad:
            self._pad_command(command)
        elif command in DIRECTIONS:
            self._nudge(*DIRECTIONS[command])
        self._last_key = ""

    def _nudge(self, dx: int, dy: int) -> None:
        """Move the selected points or, without any, the view."""
        if self.document.selected:
            distance = NUDGE_FINE if self.shift_held else NUDGE
            self.document.nudge(dx * distance, dy * distance)
        else:
            step = self.app.theme.px(PAN_STEP)
            self.canvas.camera.pan(-dx * step, dy * step)

    def _pad_command(self, command: Command) -> None:
        """Move the cursor, or take and drop what is below it."""
        width, height = self.canvas.camera.size
        x, y = self.mouse.position or (width // 2, height // 2)
        if command in DIRECTIONS:
            dx, dy = DIRECTIONS[command]
            step = self.app.theme.px(CURSOR_STEP)
            x, y = min(max(x + dx * step, 0), width - 1), min(max(y - dy * step, 0), height - 1)
            if self.mouse.grabbed:
                self.mouse.drag_to(x, y)
            else:
                self.mouse.hover(x, y)
        elif command == Command.ACCEPT and self.mouse.grabbed:
            self.mouse.release(x, y)
        elif command == Command.ACCEPT:
            self.mouse.press(x, y)
            self.mouse.grabbed = True
        elif command in PAD_ACTIONS:
            self.run(action_named(PAD_ACTIONS[command]))


def open_editor(app: AppContext, draft: Draft, circuit_id: str | None = None) -> None:
    """Open a circuit in the editor. circuit_id: id of the own circuit that Save replaces; None saves a new one."""
    open_when_loaded(app, lambda: EditorScreen(app, draft, circuit_id))

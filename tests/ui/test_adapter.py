"""pygame's events become intents and controls, at one place."""

from pathlib import Path

import pygame
import pytest

from racer_viewer.ui.adapter import InputAdapter
from racer_viewer.ui.bindings import BINDING_LABELS, DEFAULT_BINDINGS, FIXED_BINDINGS, rebind
from racer_viewer.ui.intents import (
    Click,
    CloseWindow,
    Command,
    Controls,
    Drag,
    FileDrop,
    Intent,
    KeyPress,
    Modifiers,
    MouseMove,
    RightClick,
    RightDrag,
)


def event(kind: int, **values: object) -> pygame.event.Event:
    return pygame.event.Event(kind, **values)


def key(name: str, kind: int = pygame.KEYDOWN) -> pygame.event.Event:
    return event(kind, key=pygame.key.key_code(name))


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame.display.init()


@pytest.mark.parametrize(
    ("pressed", "wanted"),
    [
        ("return", Command.ACCEPT),
        ("escape", Command.BACK),
        ("f1", Command.HELP),
        ("h", Command.HELP),
        ("r", Command.RESTART),
        ("2", Command.REWARD),
    ],
)
def test_a_key_means_what_it_is_bound_to(pressed: str, wanted: Command) -> None:
    assert InputAdapter().intents([key(pressed)]) == [KeyPress(pressed), wanted]


def test_held_keys_are_controls_until_they_are_let_go() -> None:
    adapter = InputAdapter()
    adapter.intents([key("up"), key("a")])
    assert adapter.controls() == Controls(steer=-1.0, throttle=1.0)
    adapter.intents([key("right")])
    assert adapter.controls().steer == 0.0
    adapter.intents([key("a", pygame.KEYUP), key("up", pygame.KEYUP)])
    assert adapter.controls() == Controls(steer=1.0)
    adapter.intents([event(pygame.WINDOWFOCUSLOST)])
    assert adapter.controls() == Controls()


def test_a_stick_and_triggers_are_analogue_with_a_dead_zone() -> None:
    adapter = InputAdapter()
    stick, right, left = (
        pygame.CONTROLLER_AXIS_LEFTX,
        pygame.CONTROLLER_AXIS_TRIGGERRIGHT,
        pygame.CONTROLLER_AXIS_TRIGGERLEFT,
    )
    adapter.intents([event(pygame.CONTROLLERAXISMOTION, axis=stick, value=2000, instance_id=0)])
    assert adapter.controls() == Controls()
    adapter.intents(
        [
            event(pygame.CONTROLLERAXISMOTION, axis=stick, value=-32768, instance_id=0),
            event(pygame.CONTROLLERAXISMOTION, axis=right, value=16384, instance_id=0),
            event(pygame.CONTROLLERAXISMOTION, axis=left, value=0, instance_id=0),
        ]
    )
    assert adapter.controls() == Controls(steer=-1.0, throttle=0.5, analogue=True)
    adapter.intents([key("up")])
    assert not adapter.controls().analogue


def test_a_tilted_stick_moves_once_through_a_menu() -> None:
    adapter = InputAdapter()
    moves: list[Intent] = []
    for value in (0, 25_000, 32_000, 5_000, 25_000, -25_000, 0, -25_000):
        moves += adapter.intents(
            [event(pygame.CONTROLLERAXISMOTION, axis=pygame.CONTROLLER_AXIS_LEFTY, value=value, instance_id=0)]
        )
    assert moves == [Command.DOWN, Command.DOWN, Command.UP]


def test_the_mouse_points_clicks_drags_and_goes_back() -> None:
    adapter = InputAdapter()
    assert adapter.intents([event(pygame.MOUSEMOTION, pos=(3, 4), rel=(1, 1), buttons=(0, 0, 0))]) == [MouseMove(3, 4)]
    assert adapter.intents([event(pygame.MOUSEMOTION, pos=(3, 4), rel=(1, 2), buttons=(1, 0, 0))]) == [Drag(1, 2, 3, 4)]
    assert adapter.intents([event(pygame.MOUSEBUTTONDOWN, pos=(3, 4), button=1)]) == [Click(3, 4)]
    assert adapter.intents([event(pygame.MOUSEBUTTONDOWN, pos=(3, 4), button=3)]) == [RightClick(3, 4)]
    motion = event(pygame.MOUSEMOTION, pos=(3, 4), rel=(1, 2), buttons=(0, 0, 1))
    assert adapter.intents([motion]) == [RightDrag(1, 2, 3, 4)]
    motion = event(pygame.MOUSEMOTION, pos=(3, 4), rel=(1, 2), buttons=(0, 1, 0))
    assert adapter.intents([motion]) == [Drag(1, 2, 3, 4, middle=True)]


def test_keys_held_with_the_mouse_or_another_key_are_known() -> None:
    adapter = InputAdapter()
    adapter.intents([key("left ctrl")])
    assert adapter.intents([key("z")]) == [KeyPress("z", Modifiers(ctrl=True))]
    adapter.intents([key("left ctrl", pygame.KEYUP), key("right shift")])
    assert adapter.intents([event(pygame.MOUSEBUTTONDOWN, pos=(3, 4), button=1)]) == [
        Click(3, 4, Modifiers(shift=True))
    ]
    adapter.intents([key("right shift", pygame.KEYUP)])
    assert adapter.intents([key("z")]) == [KeyPress("z")]


def test_files_and_the_window_itself() -> None:
    adapter = InputAdapter()
    assert adapter.intents([event(pygame.DROPFILE, file="a.racer")]) == [FileDrop(Path("a.racer"))]
    assert adapter.intents([event(pygame.QUIT)]) == [CloseWindow()]


def test_a_key_that_is_given_away_leaves_nothing_without_a_key() -> None:
    bindings = rebind(DEFAULT_BINDINGS, Command.CAMERA, "r")
    assert bindings[Command.CAMERA] == ("r",)
    assert bindings[Command.RESTART] == ("c",)
    bindings = rebind(DEFAULT_BINDINGS, Command.CAMERA, "w")
    assert bindings["throttle"] == ("up",)


@pytest.mark.parametrize("fixed", ["escape", "f11", "return", "h"])
def test_keys_that_are_the_same_for_all_cannot_be_taken(fixed: str) -> None:
    assert rebind(DEFAULT_BINDINGS, Command.CAMERA, fixed) == DEFAULT_BINDINGS


def test_everything_that_can_be_bound_has_a_name_and_no_key_twice() -> None:
    assert set(BINDING_LABELS) == set(DEFAULT_BINDINGS)
    keys = [each for keys in DEFAULT_BINDINGS.values() for each in keys]
    assert len(keys) == len(set(keys))
    others = {each for name, keys in FIXED_BINDINGS.items() for each in keys} - {"up", "down", "left", "right"}
    others.remove("space")  # accepts in lists and stops time on the road, where nothing is to be accepted
    assert not others & set(keys)

"""Translation of pygame events into intents and controls; no other module reads pygame events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pygame

from racer_viewer.ui.bindings import DEFAULT_BINDINGS, HELD_CONTROLS, Bindings, commands_for
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
    Release,
    RightClick,
    RightDrag,
    Scroll,
    TextInput,
)

DEAD_ZONE = 0.12
"""Part of a stick's range around its centre that counts as zero."""
TILT_THRESHOLD, RELEASE_THRESHOLD = 0.6, 0.3
"""Stick positions at which a menu moves by one item, and at which the stick may move it again."""
REPEAT_DELAY, REPEAT_INTERVAL = 0.4, 0.06
"""Time after which a held direction is repeated, and time between two repeats [s]."""
DIRECTIONS = (Command.UP, Command.DOWN, Command.LEFT, Command.RIGHT)
AXIS_RANGE = 32768.0
"""Full scale of an axis value of a game controller."""

_SHIFT_KEYS = {"left shift", "right shift"}
_CTRL_KEYS = {"left ctrl", "right ctrl", "left meta", "right meta"}

_BUTTONS = {
    pygame.CONTROLLER_BUTTON_A: Command.ACCEPT,
    pygame.CONTROLLER_BUTTON_B: Command.BACK,
    pygame.CONTROLLER_BUTTON_X: Command.RESTART,
    pygame.CONTROLLER_BUTTON_Y: Command.CAMERA,
    pygame.CONTROLLER_BUTTON_START: Command.BACK,
    pygame.CONTROLLER_BUTTON_BACK: Command.HELP,
    pygame.CONTROLLER_BUTTON_LEFTSHOULDER: Command.PUT_BACK,
    pygame.CONTROLLER_BUTTON_RIGHTSHOULDER: Command.RAYS,
    pygame.CONTROLLER_BUTTON_RIGHTSTICK: Command.REWARD,
    pygame.CONTROLLER_BUTTON_DPAD_UP: Command.UP,
    pygame.CONTROLLER_BUTTON_DPAD_DOWN: Command.DOWN,
    pygame.CONTROLLER_BUTTON_DPAD_LEFT: Command.LEFT,
    pygame.CONTROLLER_BUTTON_DPAD_RIGHT: Command.RIGHT,
}
_JOYSTICK_BUTTONS = {
    0: Command.ACCEPT,
    1: Command.BACK,
    2: Command.RESTART,
    3: Command.CAMERA,
    4: Command.PUT_BACK,
    5: Command.RAYS,
    7: Command.BACK,
    6: Command.HELP,
}
_HAT = {(0, 1): Command.UP, (0, -1): Command.DOWN, (-1, 0): Command.LEFT, (1, 0): Command.RIGHT}
_STICK_X, _STICK_Y = pygame.CONTROLLER_AXIS_LEFTX, pygame.CONTROLLER_AXIS_LEFTY
_TRIGGERS = {pygame.CONTROLLER_AXIS_TRIGGERLEFT: "brake", pygame.CONTROLLER_AXIS_TRIGGERRIGHT: "throttle"}
_JOYSTICK_TRIGGERS = {2: "brake", 5: "throttle"}


class InputAdapter:
    """Converter that keeps track of held keys and axes, and opens gamepads as they are plugged in."""

    def __init__(self, bindings: Bindings = DEFAULT_BINDINGS) -> None:
        self.bindings = bindings
        self._keys: set[str] = set()
        self._stick = 0.0
        self._pedals = {"throttle": 0.0, "brake": 0.0}
        self._analogue = False
        self._tilted: Command | None = None
        self._direction: Command | None = None
        """Direction that is held."""
        self._direction_key: object = None
        """Key, button or axis that holds it."""
        self._next_repeat = 0.0
        """Time until the direction is repeated [s]."""
        self._pads: dict[int, object] = {}
        self.reduction = 1
        """Number of pixels of the window along a side of each pixel of the picture, in which positions are given."""
        self.gamepad = False
        """True if the device used last is a gamepad, False if it is the keyboard."""

    def intents(self, events: Iterable[pygame.event.Event]) -> list[Intent]:
        """Return the intents of these events, in order."""
        found: list[Intent] = []
        for event in events:
            found += self._intents_of(event)
        return found

    def repeated(self, elapsed: float) -> Command | None:
        """Return the held direction if it is due again; `elapsed` is the time since the last call [s]."""
        if self._direction is None:
            return None
        self._next_repeat -= elapsed
        if self._next_repeat > 0.0:
            return None
        self._next_repeat = REPEAT_INTERVAL
        return self._direction

    def controls(self) -> Controls:
        """Return the held controls of the device that was used last."""
        if self._analogue:
            return Controls(self._stick, self._pedals["throttle"], self._pedals["brake"], analogue=True)
        held = {name: float(any(key in self._keys for key in self.bindings[name])) for name in HELD_CONTROLS}
        return Controls(held["steer_right"] - held["steer_left"], held["throttle"], held["brake"])

    def release_all(self) -> None:
        """Forget held keys and axes: the window lost the focus, or another screen opened."""
        self._keys.clear()
        self._direction = None
        self._stick, self._pedals = 0.0, {"throttle": 0.0, "brake": 0.0}

    def _intents_of(self, event: pygame.event.Event) -> list[Intent]:
        if event.type == pygame.KEYDOWN:
            return self._key_down(pygame.key.name(event.key))
        if event.type == pygame.KEYUP:
            self._keys.discard(pygame.key.name(event.key))
            self._let_go(pygame.key.name(event.key))
        elif event.type == pygame.MOUSEMOTION:
            return [self._motion(event)]
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == pygame.BUTTON_LEFT:
            return [Click(*self._in_picture(event.pos), self._modifiers)]
        elif event.type == pygame.MOUSEBUTTONUP and event.button == pygame.BUTTON_LEFT:
            return [Release(*self._in_picture(event.pos))]
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == pygame.BUTTON_RIGHT:
            return [RightClick(*self._in_picture(event.pos))]
        elif event.type == pygame.MOUSEWHEEL:
            place = self._in_picture(pygame.mouse.get_pos())
            return [Scroll(event.precise_y or event.y, *place, self._modifiers)]
        elif event.type == pygame.TEXTINPUT:
            return [TextInput(event.text)]
        elif event.type == pygame.DROPFILE:
            return [FileDrop(Path(event.file))]
        elif event.type in (pygame.QUIT, pygame.WINDOWCLOSE):
            return [CloseWindow()]
        elif event.type == pygame.WINDOWFOCUSLOST:
            self.release_all()
        else:
            return self._pad_intents(event)
        return []

    def _motion(self, event: pygame.event.Event) -> Intent:
        """Return the intent of a mouse movement, by the button that is held."""
        (dx, dy), place = (pixels / self.reduction for pixels in event.rel), self._in_picture(event.pos)
        left, middle, right = event.buttons[:3]
        if left or middle:
            return Drag(dx, dy, *place, middle=not left, modifiers=self._modifiers)
        return RightDrag(dx, dy, *place) if right else MouseMove(*place)

    @property
    def _modifiers(self) -> Modifiers:
        """Modifier keys that are held now."""
        shift, ctrl = (bool(self._keys & names) for names in (_SHIFT_KEYS, _CTRL_KEYS))
        return Modifiers(shift, ctrl, "space" in self._keys)

    def _in_picture(self, pixels: tuple[int, int]) -> tuple[int, int]:
        """Convert pixels of the window to pixels of the picture."""
        return round(pixels[0] / self.reduction), round(pixels[1] / self.reduction)

    def _key_down(self, key: str) -> list[Intent]:
        press = KeyPress(key, self._modifiers)
        self._keys.add(key)
        self._analogue = self.gamepad = False
        commands = commands_for(self.bindings, key)
        self._hold(key, commands)
        return [press, *commands]

    def _hold(self, key: object, commands: Iterable[Command]) -> None:
        """Remember the direction that a key, button or axis gives while it is held."""
        for command in commands:
            if command in DIRECTIONS:
                self._direction, self._direction_key, self._next_repeat = command, key, REPEAT_DELAY

    def _let_go(self, key: object) -> None:
        if self._direction_key == key:
            self._direction = None

    def _pad_intents(self, event: pygame.event.Event) -> list[Intent]:
        if event.type == pygame.CONTROLLERBUTTONDOWN:
            return self._command(_BUTTONS.get(event.button), ("button", event.button))
        if event.type == pygame.CONTROLLERBUTTONUP:
            self._let_go(("button", event.button))
        if event.type == pygame.CONTROLLERAXISMOTION:
            return self._axis(event.axis, event.value / AXIS_RANGE, _TRIGGERS, rest=0.0)
        if event.type in (pygame.JOYDEVICEADDED, pygame.JOYDEVICEREMOVED):
            self._update_pads(event)
        elif event.type == pygame.JOYBUTTONDOWN and not self._is_controller(event):
            return self._command(_JOYSTICK_BUTTONS.get(event.button))
        elif event.type == pygame.JOYHATMOTION and not self._is_controller(event):
            self._let_go("hat")
            return self._command(_HAT.get(tuple(event.value)), "hat")
        elif event.type == pygame.JOYAXISMOTION and not self._is_controller(event):
            return self._axis(event.axis, event.value, _JOYSTICK_TRIGGERS, rest=-1.0)
        return []

    def _command(self, command: Command | None, key: object = None) -> list[Intent]:
        """Return a button's command; `key` identifies the button if it can be held for a direction."""
        self.gamepad = True
        if command is None:
            return []
        self._hold(key, [command])
        return [command]

    def _axis(self, axis: int, value: float, triggers: dict[int, str], rest: float) -> list[Intent]:
        """Apply an axis value: sticks steer and move through menus, triggers are pedals from `rest` to 1."""
        if axis in triggers:
            self._pedals[triggers[axis]] = min(1.0, max(0.0, (value - rest) / (1.0 - rest)))
            self._use_pad(self._pedals[triggers[axis]] > DEAD_ZONE)
            return []
        if axis == _STICK_X:
            size = max(0.0, abs(value) - DEAD_ZONE) / (1.0 - DEAD_ZONE)
            self._stick = min(1.0, size) * (1.0 if value > 0.0 else -1.0)
            self._use_pad(size > 0.0)
            return self._tilt(value, Command.LEFT, Command.RIGHT)
        if axis == _STICK_Y:
            return self._tilt(value, Command.UP, Command.DOWN)
        return []

    def _use_pad(self, moved: bool) -> None:
        """Take the held controls from the gamepad from now on, if one of its axes was moved."""
        self._analogue = self._analogue or moved
        self.gamepad = self.gamepad or moved

    def _tilt(self, value: float, less: Command, more: Command) -> list[Intent]:
        if self._tilted in (less, more) and abs(value) < RELEASE_THRESHOLD:
            self._tilted = None
            self._let_go(less)
        if self._tilted is None and abs(value) > TILT_THRESHOLD:
            self._tilted = more if value > 0.0 else less
            self._hold(less, [self._tilted])
            return [self._tilted]
        return []

    def _update_pads(self, event: pygame.event.Event) -> None:
        """Open a new gamepad, as a controller if SDL knows its buttons, else as a joystick; drop removed ones."""
        if event.type == pygame.JOYDEVICEREMOVED:
            self._pads.pop(event.instance_id, None)
            self.release_all()
            return
        from pygame._sdl2 import controller

        if not controller.get_init():
            controller.init()
        joystick = pygame.joystick.Joystick(event.device_index)
        known = controller.is_controller(event.device_index)
        self._pads[joystick.get_instance_id()] = controller.Controller(event.device_index) if known else joystick

    def _is_controller(self, event: pygame.event.Event) -> bool:
        pad = self._pads.get(event.instance_id)
        return pad is not None and not isinstance(pad, pygame.joystick.JoystickType)

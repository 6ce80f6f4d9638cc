"""The sound of the game, on whatever device there is, or silence where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pygame

from racer_viewer.sound.catalogue import Effect, Loop
from racer_viewer.sound.channels import Channels
from racer_viewer.sound.device import open_device
from racer_viewer.sound.drive_sound import CarSound, Heard, beginning, listen, loop_levels

START_DELAY = 0.25
"""Before the device is opened [s]: pygame holds up all threads meanwhile, and the first pictures come first."""
LEAST_INTERVAL, LONGEST_INTERVAL = 1 / 68, 0.1
"""Between two updates of the mix [s]: more would not be heard; after a longer pause it moves on as if after this."""
LOUDNESS_POWER = 1.5
"""From the volume that is set to a gain, so that half way sounds like half."""
CLOSING_TIME = 2.0
"""How long closing waits for the device [s]."""


def open_sound(volume: float = 1.0, *, delay: float = START_DELAY, unheard: bool = False) -> SoundStage:
    """A stage that will play as soon as its device is open and its sounds are made; it returns at once, never raises.

    volume: 0 to 1. delay: before the device is opened [s].
    unheard: play to SDL's dummy driver too, which else counts as no device.
    """
    stage = SoundStage(volume)
    stage.open(delay, unheard)
    return stage


class SoundStage:
    """Plays effects and the sound of one car. If it cannot, it is silent and all its methods do nothing.

    Its own thread opens the device, makes the sounds and closes the device again: Windows wants that in one thread.
    """

    def __init__(self, volume: float = 1.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self.reason: str | None = None
        """Why it is silent; None while it plays or is about to."""
        self._volume = _within_limits(volume)
        self._clock = clock
        self._last_tick = 0.0
        self._paused = False
        self._heard: Heard | None = None
        self._channels: Channels | None = None
        self._effects: dict[Effect, pygame.mixer.Sound] = {}
        self._loops: dict[Loop, pygame.mixer.Sound] = {}
        self._thread: threading.Thread | None = None
        self._settled = threading.Event()
        self._closing = threading.Event()

    @property
    def volume(self) -> float:
        return self._volume

    @property
    def playing(self) -> dict[Loop, float]:
        """The loops that sound now and their gains before the volume."""
        channels = self._channels
        return dict(channels.playing) if channels else {}

    def open(self, delay: float = 0.0, unheard: bool = False) -> None:
        """Begins to open, in the background; as `open_sound`."""
        self._thread = threading.Thread(target=self._run, args=(delay, unheard), name="sound", daemon=True)
        self._thread.start()

    def wait_until_settled(self, timeout: float) -> bool:
        """Whether it has come to play, or to be silent for a reason, within so many seconds."""
        return self._settled.wait(timeout)

    def tick(self, car: CarSound) -> None:
        """The car as it is now, once per frame or tick; between two calls everything sounds on."""
        channels, loops = self._channels, self._loops
        now = self._clock()
        elapsed = now - self._last_tick
        if channels is None or not loops or self._paused or elapsed < LEAST_INTERVAL:
            return
        self._last_tick = now
        if self._heard is None:
            self._heard, elapsed = beginning(car), LEAST_INTERVAL
        self._heard = listen(self._heard, car, min(elapsed, LONGEST_INTERVAL))
        with self._silent_if_it_fails():
            channels.set_levels(loops, loop_levels(self._heard))
        if self._heard.hit:
            self.play("wall", self._heard.hit)

    def play(self, name: Effect, gain: float = 1.0) -> None:
        """An effect, once. One that is not made yet is left out: late it would be wrong."""
        channels, sound = self._channels, self._effects.get(name)
        if channels is not None and sound is not None:
            with self._silent_if_it_fails():
                channels.play(sound, gain)

    def set_volume(self, volume: float) -> None:
        """0 to 1, of everything, at once."""
        self._volume = _within_limits(volume)
        self._pass_volume_on()

    def pause(self) -> None:
        """Nothing more of the car until `resume`, as in a menu; effects still play."""
        self._paused = True
        self._heard = None
        channels = self._channels
        if channels is not None:
            with self._silent_if_it_fails():
                channels.fade_out()

    def resume(self) -> None:
        self._paused = False

    def close(self) -> None:
        """Silence, and the device is free; again has no effect."""
        self._fall_silent("closed")
        if self._thread is not None:
            self._thread.join(CLOSING_TIME)

    def _run(self, delay: float, unheard: bool) -> None:
        """The life of the device."""
        if self._closing.wait(delay):
            return
        try:
            open_device(unheard)
            try:
                self._make_sounds()
                self._settled.set()
                self._closing.wait()
            finally:
                self._fall_silent("closed")
                pygame.mixer.quit()
        except Exception as error:  # a race without sound is better than none, whatever the machine's sound is like
            self._fall_silent(str(error) or type(error).__name__)

    def _make_sounds(self) -> None:
        """Effects first, for the menu. What makes them is imported here: numpy is not needed for a first picture."""
        from racer_viewer.sound.bank import make_effects, make_loops, stereo_16_bit

        self._channels = Channels()
        self._effects = {name: pygame.mixer.Sound(buffer=stereo_16_bit(made).data) for name, made in make_effects()}
        self._pass_volume_on()
        loops: dict[Loop, pygame.mixer.Sound] = {}
        for loop, made in make_loops():
            if self._closing.is_set():
                return
            loops[loop] = pygame.mixer.Sound(buffer=stereo_16_bit(made).data)
        self._loops = loops
        self._pass_volume_on()

    def _pass_volume_on(self) -> None:
        gain = self._volume**LOUDNESS_POWER
        with self._silent_if_it_fails():
            for sound in (*self._effects.values(), *self._loops.values()):
                sound.set_volume(gain)

    @contextmanager
    def _silent_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except pygame.error as error:
            self._fall_silent(str(error))

    def _fall_silent(self, reason: str) -> None:
        """For good; the first reason counts."""
        self.reason = self.reason or reason
        self._channels, self._effects, self._loops = None, {}, {}
        self._closing.set()
        self._settled.set()


def _within_limits(volume: float) -> float:
    return min(1.0, max(0.0, volume))

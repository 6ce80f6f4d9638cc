"""The mixer's channels: which loop is on which, and how loud."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import pygame

from racer_viewer.sound.catalogue import Loop

LOOP_CHANNELS, EFFECT_CHANNELS = 14, 6
"""At most 8 loops sound at a time; the others fade out. Of effects, a seventh takes the place of the oldest."""
STEPS = 255
"""Of a channel's volume."""
COME_IN, GO_OUT = 12, 90
"""How a loop begins, so that it is never heard at the wrong volume, and how it ends when a drive does [ms]."""
FOREVER = -1


class Channels:
    """Plays loops at given levels, and effects. Any call may raise `pygame.error` if the device has gone."""

    def __init__(self) -> None:
        pygame.mixer.set_num_channels(LOOP_CHANNELS + EFFECT_CHANNELS)
        channels = [pygame.mixer.Channel(number) for number in range(LOOP_CHANNELS + EFFECT_CHANNELS)]
        self._free = deque(channels[:LOOP_CHANNELS])
        self._effects = deque(channels[LOOP_CHANNELS:])
        self._playing: dict[Loop, pygame.mixer.Channel] = {}
        self._steps: dict[Loop, int] = {}

    @property
    def playing(self) -> Mapping[Loop, float]:
        """The loops that sound and their gains."""
        return {loop: step / STEPS for loop, step in self._steps.items()}

    def set_levels(self, sounds: Mapping[Loop, pygame.mixer.Sound], levels: Mapping[Loop, float]) -> None:
        """Exactly these loops, each with its gain, 0 to 1."""
        for loop in [loop for loop in self._playing if loop not in levels]:
            self._release(loop).stop()
        for loop, gain in levels.items():
            if loop not in self._playing:
                self._begin(loop, sounds[loop])
            step = round(gain * STEPS)
            if step != self._steps[loop]:
                self._steps[loop] = step
                self._playing[loop].set_volume(step / STEPS, step / STEPS)

    def play(self, sound: pygame.mixer.Sound, gain: float) -> None:
        """Once, on a channel that is free or else on the one that is busy longest."""
        channel = next((each for each in self._effects if not each.get_busy()), self._effects[0])
        self._effects.remove(channel)
        self._effects.append(channel)
        channel.play(sound)
        channel.set_volume(gain, gain)

    def fade_out(self) -> None:
        """Ends all loops softly; effects play on."""
        for loop in list(self._playing):
            self._release(loop).fadeout(GO_OUT)

    def _begin(self, loop: Loop, sound: pygame.mixer.Sound) -> None:
        channel = self._free.popleft()
        channel.play(sound, FOREVER, fade_ms=COME_IN)
        self._playing[loop], self._steps[loop] = channel, FOREVER

    def _release(self, loop: Loop) -> pygame.mixer.Channel:
        """The channel goes to the end of the queue, so that one that fades out is not taken at once."""
        channel = self._playing.pop(loop)
        del self._steps[loop]
        self._free.append(channel)
        return channel

"""Sound of engine, tyres, walls and menu, synthesised from sines and noise.

`player = open_sound(0.8)`, then `player.tick(car_sound(row))` in every frame of a drive and `player.play("accept")`.
"""

from racer_viewer.sound.drive_sound import CarSound, Effect, car_sound
from racer_viewer.sound.mixer import SoundPlayer, open_sound

__all__ = ["CarSound", "Effect", "SoundPlayer", "car_sound", "open_sound"]

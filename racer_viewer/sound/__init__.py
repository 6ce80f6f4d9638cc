"""Sound: engine, tyres, walls, menu, all made here from sines and noise.

`stage = open_sound(0.8)`, then `stage.tick(car_sound(row))` in every frame of a drive and `stage.play("accept")`.
"""

from racer_viewer.sound.drive_sound import CarSound, Effect, car_sound
from racer_viewer.sound.mixer import SoundStage, open_sound

__all__ = ["CarSound", "Effect", "SoundStage", "car_sound", "open_sound"]

"""What a racing agent sees and does, as `racer_env.bridge.interface` has it.

Said again here, since that module needs the compiled engine, and an agent does not. A test keeps them equal.
"""

import numpy as np

OBSERVATION_SIZE = 14
ACTION_LOW = np.array([-1.0, 0.0, 0.0], np.float32)
"""Steer, throttle, brake."""
ACTION_HIGH = np.ones(3, np.float32)
ACTION_SIZE = ACTION_LOW.size

ACTION_LOW.flags.writeable = ACTION_HIGH.flags.writeable = False

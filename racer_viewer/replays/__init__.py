"""Replays: the actions of a drive in a small file, re-simulated by the same engine.

`trace_replay(load_replay("lap.racer"))` returns every tick, bit-identical. Importing this package loads no engine.
"""

from racer_viewer.replays.demonstrations import (
    Demonstration,
    clean_laps,
    demonstrated_drive,
    demonstrated_lap,
    load_lessons,
)
from racer_viewer.replays.recoveries import RecoverySteps, recoveries
from racer_viewer.replays.replay import ENGINE_VERSION, Replay, ReplayError, ReplayRecorder, RunRecording
from racer_viewer.replays.replay_file import (
    SUFFIX,
    ReplayFacts,
    ReplayFolder,
    file_name,
    load_replay,
    replay_from_bytes,
    replay_to_bytes,
    save_replay,
)
from racer_viewer.replays.trace import (
    MAX_COMPARED,
    Comparison,
    ReplayLap,
    ReplayTracer,
    Standing,
    Trace,
    common_track,
    trace_replay,
)

__all__ = [
    "ENGINE_VERSION",
    "MAX_COMPARED",
    "SUFFIX",
    "Comparison",
    "Demonstration",
    "RecoverySteps",
    "Replay",
    "ReplayError",
    "ReplayFacts",
    "ReplayFolder",
    "ReplayLap",
    "ReplayRecorder",
    "ReplayTracer",
    "RunRecording",
    "Standing",
    "Trace",
    "clean_laps",
    "common_track",
    "demonstrated_drive",
    "demonstrated_lap",
    "file_name",
    "load_lessons",
    "load_replay",
    "recoveries",
    "replay_from_bytes",
    "replay_to_bytes",
    "save_replay",
    "trace_replay",
]

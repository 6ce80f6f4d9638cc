"""Replays: a run as what the driver did, kept in a small file and driven again by the same engine.

`trace_replay(load_replay("lap.racer"))` is every tick of it, to the bit. Importing this loads no engine.
"""

from racer_viewer.replays.replay import ENGINE_VERSION, Recording, Replay, ReplayError, ReplayRecorder
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
    Lap,
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
    "Lap",
    "Recording",
    "Replay",
    "ReplayError",
    "ReplayFacts",
    "ReplayFolder",
    "ReplayRecorder",
    "ReplayTracer",
    "Standing",
    "Trace",
    "common_track",
    "file_name",
    "load_replay",
    "replay_from_bytes",
    "replay_to_bytes",
    "save_replay",
    "trace_replay",
]

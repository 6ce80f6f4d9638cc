"""Exported ONNX policies: normalised `obs` [1, 14] → `actions` [1, 3]. Only this module imports onnxruntime."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from racer_viewer.agents.archive import AgentError, shown
from racer_viewer.agents.networks import Floats
from racer_viewer.agents.policies import ACTION_HIGH, ACTION_LOW, ACTION_SIZE, OBSERVATION_SIZE, ActionBox

INPUT, OUTPUT = "obs", "actions"
DERIVATIVE_STEP = 1e-3
"""Step of the central difference, in normalised inputs."""


class OnnxPolicy:
    """Policy of an ONNX model; only its mean action is known."""

    def __init__(self, data: bytes) -> None:
        self._session = _open_session(data)
        _check_ends(self._session)
        self._one_by_one = self._session.get_inputs()[0].shape[0] == 1
        self._box = ActionBox(ACTION_LOW, ACTION_HIGH)

    @property
    def noise_shape(self) -> None:
        return None

    def mean_actions(self, inputs: Floats) -> Floats:
        rows = np.atleast_2d(inputs)
        if self._one_by_one:
            actions = np.concatenate([self._run(row[np.newaxis]) for row in rows] or [np.empty((0, 3), np.float32)])
        else:
            actions = self._run(rows)
        return self._box.clip(actions.reshape((*inputs.shape[:-1], ACTION_SIZE)))

    def sampled_actions(self, inputs: Floats, rng: np.random.Generator) -> None:
        return None

    def noisy_actions(self, inputs: Floats, normals: Floats) -> None:
        return None

    def values(self, inputs: Floats) -> None:
        return None

    def spread(self, inputs: Floats) -> None:
        return None

    def jacobian(self, inputs: Floats) -> Floats:
        """Return the derivative of the mean action, by central differences."""
        steps = np.eye(OBSERVATION_SIZE, dtype=np.float32) * np.float32(DERIVATIVE_STEP)
        difference: Floats = self.mean_actions(inputs + steps) - self.mean_actions(inputs - steps)
        return difference.T / np.float32(2.0 * DERIVATIVE_STEP)

    def _run(self, rows: Floats) -> Floats:
        try:
            (actions,) = self._session.run([OUTPUT], {INPUT: rows})
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise AgentError(f"the model failed while driving ({shown(str(error))})") from error
        return np.asarray(actions, np.float32)


def _open_session(data: bytes) -> Any:
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise AgentError("an .onnx model needs onnxruntime: pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise AgentError(f"is not an ONNX model that onnxruntime can run ({shown(str(error))})") from error


def _check_ends(session: Any) -> None:
    for ends, name, size in (
        (session.get_inputs(), INPUT, OBSERVATION_SIZE),
        (session.get_outputs(), OUTPUT, ACTION_SIZE),
    ):
        found = [(end.name, end.type, end.shape) for end in ends]
        if len(found) != 1 or found[0][:2] != (name, "tensor(float)") or found[0][2][1:] != [size]:
            raise AgentError(f"has {shown(str(found))}; required is {name!r} of [1, {size}] single precision numbers")

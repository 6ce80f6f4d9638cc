"""Gymnasium over stdin and stdout: an environment in a process of its own, one JSON object per line."""

from racer_env.stdio.client import StdioClient
from racer_env.stdio.env import StdioEnv
from racer_env.stdio.schema import Expected

__all__ = ["Expected", "StdioClient", "StdioEnv"]

"""Agents: saved PPO and SAC policies that drive with numpy alone. Nothing in a model file is executed.

Usage: `load_agent("champion.zip").act(observation)`.
"""

from racer_viewer.agents.agent import Agent, AgentInfo
from racer_viewer.agents.archive import AgentError
from racer_viewer.agents.load import CHAMPION, agent_of_arrays, bundled_models, load_agent, models_folder
from racer_viewer.agents.stats import RunningStats, Statistics, restore_stats, stats_of
from racer_viewer.agents.stats_files import find_stats, load_stats, save_stats

__all__ = [
    "CHAMPION",
    "Agent",
    "AgentError",
    "AgentInfo",
    "RunningStats",
    "Statistics",
    "agent_of_arrays",
    "bundled_models",
    "find_stats",
    "load_agent",
    "load_stats",
    "models_folder",
    "restore_stats",
    "save_stats",
    "stats_of",
]

"""The bridge answers."""

from racer_env import RacerEnv
from tests.bridge.conftest import RunningBridge


def test_an_environment_over_the_socket_steps(bridge: RunningBridge) -> None:
    env = RacerEnv(bridge.url)
    env.reset(seed=0)
    assert env.step([0.0, 1.0, 0.0])[4]["stepCount"] == 1
    env.close()

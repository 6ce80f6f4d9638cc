"""Requirements of `run.py --with peers`."""

from tests.training.on_ray.test_ray_lock import pins


def test_with_peers_everything_else_is_the_same() -> None:
    usual, peers = pins("app", "sb3", "torch", "games", "dev"), pins("peers")
    assert not usual.keys() & peers
    assert {"minari", "rl-zoo3", "sb3-contrib"} <= peers.keys()

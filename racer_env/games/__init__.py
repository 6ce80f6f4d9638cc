"""Games over TCP: a server that runs several games at once for any number of clients, and a client."""

from racer_env.games.client import RacingGameClient

__all__ = ["RacingGameClient"]

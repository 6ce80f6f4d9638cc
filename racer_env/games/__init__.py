"""Games over TCP: a server that plays several at once for whoever connects, and a client for it and for others."""

from racer_env.games.client import RacingGameClient

__all__ = ["RacingGameClient"]

"""Window and pictures of the games that `racer-viewer games` serves."""

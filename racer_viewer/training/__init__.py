"""Learning to drive, with stable-baselines3. What learns imports torch; `config`, `presets`, `saved` and what a
window needs of `live` do not."""

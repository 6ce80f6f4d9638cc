"""Learning to drive, with stable-baselines3. Importing a module of this package imports torch; the package does not."""

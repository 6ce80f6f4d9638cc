"""Screens of the app and the races, replays and lists that they show."""

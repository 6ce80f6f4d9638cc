"""Widgets, themes and input shared by all screens; knows pygame and nothing about racing."""

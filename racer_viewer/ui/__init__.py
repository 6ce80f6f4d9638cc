"""What every screen is made of: colours, letters, panels and things to press. Knows pygame and nothing of racing."""

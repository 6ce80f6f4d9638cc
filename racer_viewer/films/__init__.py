"""Films: recorded frames drawn in full and written as MP4, GIF or PNG files."""

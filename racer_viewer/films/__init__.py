"""Films of what is driven: moments in, an MP4, a GIF or numbered PNGs out, a picture for every sixtieth of a second."""

"""Elements added, repeated and taken out: pad, repeat, tile, insert, delete."""

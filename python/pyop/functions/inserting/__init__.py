"""Group functions that add, repeat and remove elements: pad, repeat, tile, insert, delete."""

"""Programs with writes, made by chance: names, views, containers, numbers that leave, errors caught.

``python -m tests.silence.made FIRST LAST [--gradients]`` runs those of a range of seeds, and prints the
smallest program of a failure as a script.
"""

"""The hunt for silence: programs as users write them, run in every way; each is right or clearly refused.

`programs/` are written by hand, `outcomes.txt` says what becomes of each, `judge.py` decides. `made/` writes programs
by chance. ``python -m tests.silence`` prints the table of outcomes.
"""

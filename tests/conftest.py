"""What all tests have: the clock of traces stands still, so that nothing they see depends on how long something takes.
Tests of what does (tests/compiling/test_worth.py) have a clock of their own.
"""

from __future__ import annotations

from pyop.compiling import worth

worth.stand_still()

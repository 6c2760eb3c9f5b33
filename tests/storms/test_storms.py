"""Each storm, briefly, as it is with the GIL on."""

import pytest

from .__main__ import ends
from .storms import STORMS


@pytest.mark.parametrize("name", STORMS)
def test_what_threads_share_is_right(name):
    well, said = ends(name, 0.5)
    assert well, said


@pytest.mark.parametrize("name", STORMS)
def test_threads_that_take_turns_all_the_time(name):
    well, said = ends(name, 2, switch=1e-6)
    assert well, said


@pytest.mark.campaign
@pytest.mark.parametrize("name", STORMS)
def test_a_minute_of_it(name):
    well, said = ends(name, 60)
    assert well, said

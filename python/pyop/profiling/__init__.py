"""Profile ops and plans: `profile` records every call, in C++, on every thread."""

from .rows import ProfileRow
from .session import Profile, profile

__all__ = ["Profile", "ProfileRow", "profile"]

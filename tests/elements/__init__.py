"""Single elements in loops: every dtype with every operation, compiled against the plain function."""

"""How a Python function becomes an op: the decorator, its gradient rules, TensorFlow's front door."""

"""Record loops and branches as nodes of a graph: one body that C++ runs again and again."""

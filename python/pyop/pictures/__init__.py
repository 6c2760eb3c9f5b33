"""Draw pictures of graphs and plans.

`model.py` defines pictures, `build.py` makes them of graphs, plans and Values, and `layout.py` places their boxes. Then
there is one file for each renderer: `text.py` (terminal, DOT, Mermaid), `svg.py`, `page.py`, `explorer.py` (notebooks).
`methods.py` gives all of it to the types. Every text of the user's is escaped where it enters a format.
"""

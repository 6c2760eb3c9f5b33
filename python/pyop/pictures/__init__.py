"""Pictures of graphs and plans.

`model.py` has what is drawn, `build.py` makes it of graphs, plans and Values, `layout.py` places it; then one file a
renderer: `text.py` (terminal, DOT, Mermaid), `svg.py`, `page.py`, `explorer.py` (notebooks). `methods.py`
gives all of it to the types. Every text of the user's is escaped where it enters a format.
"""

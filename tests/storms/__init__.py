"""Storms: many threads that use the same objects of pyop at once, for as long as one likes.

`python -m tests.storms SECONDS [WORD …]` runs each in a process of its own and prints a table; test_storms.py runs them
briefly. What a thread computes is compared with what one thread alone gets.
"""

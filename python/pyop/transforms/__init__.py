"""Transformations of functions, and the engines that differentiate: in graphs, and at arrays."""

"""Group the functions that gradient rules put into graphs (`pyop.gradients.adjoints`), with rules of their own."""

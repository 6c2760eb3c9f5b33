"""What other libraries ask for, made of pyop's functions: a module each, which imports no other of them."""

"""Find what tracing a function needs to know of it: what its code says, and the state it reads beside its arguments."""

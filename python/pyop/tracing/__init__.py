"""What tracing a function needs to know of it: what its code says, and the state that it reads beside its arguments."""

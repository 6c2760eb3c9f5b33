"""Group reductions along axes, whole and running: sum, prod, max, mean, std, argmax, cumsum, nansum."""

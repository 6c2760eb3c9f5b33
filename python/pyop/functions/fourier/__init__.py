"""Group the functions of np.fft."""

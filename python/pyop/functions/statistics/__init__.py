"""Statistics: median, quantile, average, cov, corrcoef, histogram, bincount."""

"""Group statistics: median, quantile, average, cov, corrcoef, histogram, bincount."""

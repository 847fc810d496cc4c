"""Export measurements to loggers and to Prometheus, without other packages."""
from fuel.export.flat import as_flat
from fuel.export.prometheus import MetricsServer, serve_metrics

__all__ = ['MetricsServer', 'as_flat', 'serve_metrics']

# Pickles and error texts name the public path.
MetricsServer.__module__ = __name__

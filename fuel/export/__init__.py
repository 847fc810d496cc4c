"""Export measurements to loggers and to Prometheus, and the examples that were
read to a file, without other packages."""
from fuel.export.example_log import log_examples
from fuel.export.flat import as_flat
from fuel.export.prometheus import MetricsServer, serve_metrics

__all__ = ['MetricsServer', 'as_flat', 'log_examples', 'serve_metrics']

# Pickles and error texts name the public path.
MetricsServer.__module__ = __name__

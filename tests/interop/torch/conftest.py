"""Settings of the tests that need PyTorch."""


def pytest_configure(config):
    """Let torchdata look at each attribute of PyTorch."""
    config.addinivalue_line(
        'filterwarnings', "ignore:'set_vital' is deprecated")

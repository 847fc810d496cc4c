"""The tree of errors."""
import pickle

import pytest

from fuel import config_parser, exceptions


def test_configuration_error_has_one_class_under_both_names():
    """``fuel.config_parser`` and ``fuel.exceptions`` share the class."""
    assert (exceptions.ConfigurationError
            is config_parser.ConfigurationError)


def test_configuration_error_is_not_an_attribute_error():
    """``hasattr`` must not hide a setting without a value."""
    assert not issubclass(exceptions.ConfigurationError, AttributeError)


@pytest.mark.parametrize('name', exceptions.__all__)
def test_error_any_derives_from_the_root_and_pickles(name):
    """Each error is a FuelError and crosses a process boundary."""
    error = getattr(exceptions, name)('what happened')
    assert isinstance(error, exceptions.FuelError)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args) == (type(error), ('what happened',))


@pytest.mark.parametrize('name', [
    'AxisLabelsMismatchError', 'ConfigurationError', 'StateMismatchError',
    'UnknownLayoutError'])
def test_error_about_a_value_is_a_value_error(name):
    """Callers that catch ValueError go on catching these."""
    assert issubclass(getattr(exceptions, name), ValueError)


def test_tree_in_the_docstring_names_every_error():
    """The drawing at the top of the module is complete."""
    missing = [name for name in exceptions.__all__
               if name not in exceptions.__doc__]
    assert [] == missing

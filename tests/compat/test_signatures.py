"""Names, parameters, defaults and bases of Fuel 0.2.0 are those of today.

A signature may have grown: new parameters have defaults, and come after the
old ones or by keyword.
"""
import ast
import importlib
import inspect
import math

import pytest
from compat.contract import (
    BASES,
    CLASS_ATTRIBUTES,
    RE_EXPORTS,
    SIGNATURES,
)

from fuel.utils.signatures import signature_of

KINDS = inspect.Parameter
POSITIONAL = (KINDS.POSITIONAL_ONLY, KINDS.POSITIONAL_OR_KEYWORD)


def find(path):
    """Return what a dotted path names; its modules are imported."""
    parts = path.split('.')
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module('.'.join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for name in parts[count:]:
            thing = getattr(thing, name)
        return thing
    raise ModuleNotFoundError(path)


def statements(text):
    """Return the lines of a text, those that go on joined."""
    lines = []
    for line in text.strip().splitlines():
        if lines and lines[-1].count('(') > lines[-1].count(')'):
            lines[-1] += ' ' + line.strip()
        else:
            lines.append(line.strip())
    return lines


def promises():
    """Return the path, and arguments as an `ast` node, of each signature."""
    for module, text in SIGNATURES.items():
        owner = ''
        for line in statements(text):
            name, _, arguments = line.removeprefix('class ').partition('(')
            if name.startswith('.'):
                name = owner + name
            elif line.startswith('class '):
                owner = name
            node = ast.parse(f'lambda {arguments[:-1]}: 0', mode='eval')
            yield f'{module}.{name}', node.body.args


PROMISES = dict(promises())


def parameters_of(path):
    """Return the parameters of today, without `self`."""
    thing = find(path)
    parameters = list(signature_of(thing).parameters.values())
    owner = find(path.rpartition('.')[0])
    if inspect.isclass(owner) and not isinstance(
            inspect.getattr_static(owner, path.rpartition('.')[2]),
            (staticmethod, classmethod)):
        parameters = parameters[1:]
    return parameters


def value_of(node):
    """Return the value of a default."""
    return eval(
        compile(ast.Expression(node), '', 'eval'), {'math': math})


@pytest.mark.parametrize('path', PROMISES)
def test_signature_takes_what_the_old_one_took(path):
    """Same names in the same order, with the same defaults."""
    old = PROMISES[path]
    new = parameters_of(path)
    kinds = {parameter.kind for parameter in new}
    defaults = [None] * (len(old.args) - len(old.defaults)) + old.defaults
    for place, (argument, default) in enumerate(
            zip(old.args, defaults, strict=True)):
        assert place < len(new), f'{argument.arg} is gone'
        parameter = new[place]
        assert parameter.kind in POSITIONAL, argument.arg
        # Hooks are called by position, and had various names.
        assert argument.arg == parameter.name or 'transform_source' in path \
            or argument.arg == '_'
        if default is None:
            # An old required argument may have a default where another one
            # replaces it.
            assert parameter.default in (KINDS.empty, None) or path.startswith(
                'fuel.streams.ServerDataStream')
        elif value_of(default) is not ...:
            assert value_of(default) == parameter.default, argument.arg
    for parameter in new[len(old.args):]:
        assert (parameter.default is not KINDS.empty
                or parameter.kind in (KINDS.VAR_POSITIONAL,
                                      KINDS.VAR_KEYWORD)
                or old.vararg or old.kwarg), parameter.name
    if old.kwarg and not path.endswith(('iterator', 'get_data')):
        assert KINDS.VAR_KEYWORD in kinds or any(
            parameter.kind is KINDS.KEYWORD_ONLY
            or parameter.default is not KINDS.empty
            for parameter in new[len(old.args):])


@pytest.mark.parametrize('path', [
    path for path, arguments in PROMISES.items()
    if path.rpartition('.')[2] == 'get_epoch_iterator'])
def test_get_epoch_iterator_takes_as_dict_by_position_and_name(path):
    """Both were used."""
    parameter, = parameters_of(path)
    assert ('as_dict', False) == (parameter.name, parameter.default)
    assert parameter.kind is KINDS.POSITIONAL_OR_KEYWORD


@pytest.mark.parametrize('path', [
    f'fuel.converters.{name}.convert_{name}' for name in (
        'binarized_mnist', 'cifar10', 'cifar100', 'mnist')] + [
    'fuel.converters.svhn.convert_svhn_format_1',
    'fuel.converters.svhn.convert_svhn_format_2'])
def test_checked_converter_takes_its_documented_arguments(path):
    """Those that the manual describes, though the old signature hid them."""
    names = [parameter.name for parameter in parameters_of(path)]
    assert ['directory', 'output_directory', 'output_filename'] == names[:3]
    if path.endswith('.convert_mnist'):
        assert 'dtype' == names[3]
    output = parameters_of(path)[2].default
    assert output is None or output.endswith('.hdf5')


@pytest.mark.parametrize('path, base', [
    (f'{module}.{name}', base if '.' in base else f'{module}.{base}')
    for module, classes in BASES.items()
    for name, bases in classes.items() for base in bases.split()])
def test_class_derives_from_what_it_did(path, base):
    """`isinstance` in programs goes on working."""
    assert issubclass(find(path), find(base))


@pytest.mark.parametrize('path, value', [
    (f'{module}.{name}', value)
    for module, attributes in CLASS_ATTRIBUTES.items()
    for name, value in attributes.items()])
def test_class_attribute_has_its_value(path, value):
    """They may also be replaced, on the class or an object."""
    assert value == find(path)


@pytest.mark.parametrize('alias, path', RE_EXPORTS.items())
def test_name_is_found_in_each_place_it_had(alias, path):
    """It is the same object in all of them."""
    assert find(alias) is find(path)

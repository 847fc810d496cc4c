"""Every argument that a class takes is shown, by name and with its default.

By the pages of the API reference, by ``help`` and by ``inspect.signature``.
"""
import ast
import importlib.util
import inspect
import pydoc
import re
import textwrap
from pathlib import Path
from typing import Any, ForwardRef, Unpack, get_args, get_origin

import pytest
from support.reference import find, is_importable, listed

from fuel.datasets import Dataset, H5PYDataset
from fuel.server import Server, start_server
from fuel.streams import DataStream
from fuel.transformers import Cast, Mapping, Transformer
from fuel.transformers.image import RandomHorizontalFlip
from fuel.utils.arguments import NamedArguments
from fuel.utils.signatures import signature_of

PAGES = Path(__file__).parents[2] / 'docs' / 'api_pages.py'
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# The caller chooses how many there are, or their names.
ANY_NUMBER = {
    'fuel.interop.chainer.ConcatenatedDataset': ['*datasets'],
    'fuel.interop.chainer.DictDataset': ['**datasets'],
    'fuel.interop.chainer.TupleDataset': ['*datasets']}
CLASSES = {name: find(name) for name in listed() if is_importable(name)
           and inspect.isclass(find(name))
           and not issubclass(find(name), BaseException)}
OF_FUEL = {name: cls for name, cls in CLASSES.items()
           if issubclass(cls, NamedArguments)}


@pytest.fixture(scope='module')
def pages():
    """Return the extension of Sphinx that writes the reference."""
    spec = importlib.util.spec_from_file_location('api_pages', PAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def defaults(signature):
    """Return the defaults of parameters by name, in their order."""
    return [(parameter.name, parameter.default)
            for parameter in signature.parameters.values()]


def test_there_are_classes():
    """Nearly all are data sets, schemes and streams."""
    assert len(CLASSES) > 140
    assert len(OF_FUEL) > 90


@pytest.mark.parametrize('name', CLASSES)
def test_page_shows_each_argument_by_name(name, pages):
    """Arguments of bases are shown, too; none is ``*args`` or ``**kwargs``."""
    shown = pages.show_arguments(
        None, 'class', name, CLASSES[name], {}, '(...)', '')
    if shown is None:
        assert name not in OF_FUEL
        return
    text, _ = shown
    assert ANY_NUMBER.get(name, []) == re.findall(r'\*+\w+', text)


@pytest.mark.parametrize('name', OF_FUEL)
def test_signature_has_each_argument_by_name(name):
    """The same on every Python, and for `signature_of`."""
    signature = inspect.signature(OF_FUEL[name])
    assert not [parameter for parameter in signature.parameters.values()
                if parameter.kind in VARIABLE]
    assert defaults(signature) == defaults(signature_of(OF_FUEL[name]))


def constructors():
    """Return the classes whose constructor takes ``**kwargs``."""
    return {base for cls in OF_FUEL.values() for base in cls.__mro__
            if base.__module__.startswith('fuel.')
            and '__init__' in vars(base) and any(
                parameter.kind is parameter.VAR_KEYWORD for parameter
                in signature_of(base.__init__).parameters.values())}


def variable_hint(cls):
    """Return the type of the ``**kwargs`` of a constructor, or ``*args``."""
    for parameter in signature_of(cls.__init__).parameters.values():
        hint = parameter.annotation
        if parameter.kind in VARIABLE:
            found = (eval(hint, cls.__init__.__globals__)
                     if isinstance(hint, str) else hint)
    return found


def as_text(hint):
    """Return how a type is written."""
    if isinstance(hint, ForwardRef):
        return hint.__forward_arg__
    return hint if isinstance(hint, str) else inspect.formatannotation(hint)


def typed_constructors():
    """Yield the classes whose constructor names a dict of its keywords, and
    that dict."""
    for cls in sorted(constructors(), key=lambda cls: cls.__qualname__):
        hint = variable_hint(cls)
        if get_origin(hint) is Unpack:
            yield pytest.param(cls, *get_args(hint), id=cls.__name__)


def given_to_base(cls, base):
    """Return the names of the arguments that a constructor gives to the
    next by itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls.__init__)))
    call, = (node for node in ast.walk(tree) if isinstance(node, ast.Call)
             and ast.unparse(node.func).endswith('.__init__'))
    by_place = [argument for argument in call.args
                if ast.unparse(argument) != 'self']
    by_name = [keyword.arg for keyword in call.keywords if keyword.arg]
    return signature_of(base).bind_partial(
        *by_place, **dict.fromkeys(by_name)).arguments.keys()


@pytest.mark.parametrize('cls, options', [*typed_constructors()])
def test_types_of_keywords_are_those_of_the_bases(cls, options):
    """A constructor takes the keywords that it does not give to its bases
    itself, with the same types, and a default."""
    base = type('Base', cls.__bases__, {})
    further = {
        name: parameter
        for name, parameter in signature_of(base).parameters.items()
        if parameter.default is not parameter.empty
        and parameter.kind is not parameter.POSITIONAL_ONLY}
    taken = options.__annotations__
    assert further.keys() - given_to_base(cls, base) == taken.keys()
    for name, hint in taken.items():
        expected = next(
            found[name].annotation for found in (
                signature_of(one.__init__).parameters
                for one in base.__mro__ if '__init__' in vars(one))
            if name in found)
        assert as_text(expected) == as_text(hint), name


def test_start_server_takes_what_its_server_does():
    """With the same types and defaults."""
    assert signature_of(Server).parameters == (
        signature_of(start_server).parameters)


def test_every_constructor_that_hands_on_keywords_says_which():
    """The exceptions stand before any other class among the bases."""
    assert {'Expand', 'SeededTransformer', 'RandomTransformer'} == {
        cls.__name__ for cls in constructors() if variable_hint(cls) is Any}


@pytest.mark.parametrize('cls, names', [
    (RandomHorizontalFlip, 'seed num_threads which_sources axis_labels'),
    (Cast, 'dtype which_sources axis_labels'),
    (Mapping, 'mapping iteration_scheme axis_labels'),
    (DataStream, 'dataset iteration_scheme axis_labels'),
    (H5PYDataset, 'which_sets sources axis_labels'),
    (Transformer, 'data_stream iteration_scheme axis_labels'),
    (Dataset, 'sources axis_labels')])
def test_help_begins_with_the_arguments(cls, names):
    """With types, those of the bases too; from Python 3.14 on, long ones have
    a line for each."""
    lines = pydoc.plain(pydoc.render_doc(cls)).splitlines()[3:]
    assert lines[0].startswith(f' |  {cls.__name__}(')
    text = '\n'.join(lines[:[line.rstrip() for line in lines].index(' |')])
    shown = inspect.signature(cls).parameters
    assert {*names.split()} <= shown.keys()
    assert not [name for name in shown if f'{name}: ' not in text]

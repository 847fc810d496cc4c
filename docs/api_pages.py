"""Pages of the API reference: one for each public class and function.

The lists in ``docs/api`` name what is described; ``sphinx.ext.autosummary``
writes a page for each name to ``docs/api/generated``. This extension removes
pages whose name has gone, shows the members that a class has from a private
base on the page of the class, and which arguments its constructor takes, those
of bases included. It resolves references by any of the import paths of an
object, so that a nitpicky build finds all of them, and says where names in the
pages may break.
"""
import functools
import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import ForwardRef, is_typeddict

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc.mock import mock
from sphinx.util.inspect import stringify_signature

from fuel.utils.signatures import signature_of

HERE = Path(__file__).parent
GENERATED = HERE / 'api' / 'generated'
LIST = re.compile(
    r'^\.\. autosummary::\n   :toctree: generated\n\n((?:   .+\n)+)',
    re.MULTILINE)
MOCKED = []
# In code within a sentence; a longer one would not fit beside others.
SHORT_WORD = re.compile(r'<span class="pre">(?=[^<-]{0,14}-[^<]{1,14}</span>)')
CONSTANTS = ('None', 'True', 'False')


def listed_names():
    """Return the names in the lists of ``docs/api``, in their order."""
    return [f'fuel.{name.strip()}'
            for page in sorted((HERE / 'api').glob('*.rst'))
            for names in LIST.findall(page.read_text('utf-8'))
            for name in names.splitlines()]


@functools.cache
def find(path):
    """Return the object at a dotted path and what holds it, or None."""
    with mock(MOCKED):
        return _find(path.split('.'))


def _find(parts):
    for count in range(len(parts), 0, -1):
        try:
            parent, found = None, importlib.import_module(
                '.'.join(parts[:count]))
        except (ImportError, ValueError):
            continue
        for part in parts[count:]:
            get = (inspect.getattr_static if inspect.isclass(found)
                   else getattr)
            parent, found = found, get(found, part, None)
        return None if found is None else (found, parent)
    return None


@functools.cache
def described():
    """Return the listed names by the identity of what they name."""
    return {id(find(name)[0]): name for name in reversed(listed_names())}


@functools.cache
def short_names():
    """Return the listed names by their last part, where only one has it."""
    result = {}
    for name in listed_names():
        result.setdefault(name.rpartition('.')[2], []).append(name)
    return {short: names[0] for short, names in result.items()
            if len(names) == 1}


def shown_on(cls, member):
    """Return the class whose page shows a member, or None."""
    for place, owner in enumerate(cls.__mro__):
        if id(owner) not in described():
            continue
        for base in owner.__mro__:
            if base is not owner and id(base) in described():
                break
            if member in vars(base) and base.__module__.startswith('fuel'):
                return owner
        if place and member in vars(owner):
            return owner
    return None


def other_members(name):
    """Return the members that the page of a class does not show: those of
    bases that have a page, or that are not Fuel's."""
    cls = find(name)[0]
    return [member for member in dir(cls) if not member.startswith('_')
            and shown_on(cls, member) is not cls]


def inherited(name):
    """Return the members that other pages show, in lists by their class."""
    cls = find(name)[0]
    result = {}
    for member in sorted(dir(cls)):
        value = inspect.getattr_static(cls, member, None)
        if member.startswith('_') or not (inspect.isroutine(value) or
                                          inspect.isdatadescriptor(value)):
            continue
        owner = shown_on(cls, member)
        if owner not in (None, cls) and inspect.getdoc(
                getattr(owner, member, None)):
            result.setdefault(described()[id(owner)], []).append(member)
    return result.items()


def public_bases(app, name, obj, options, bases):
    """Show instead of a private base what it derives from."""
    def expand(base):
        if id(base) in described() or not base.__module__.startswith('fuel'):
            return [] if base is object else [base]
        return [one for parent in base.__bases__ for one in expand(parent)]
    found = dict.fromkeys(one for base in obj.__bases__
                          for one in expand(base))
    # An alias such as Generic[T] says nothing to a reader; the name of a mock
    # ends with what is in brackets.
    bases[:] = [
        f":class:`{one.__display_name__.partition('.typing.')[0]}`"
        if hasattr(one, '__sphinx_mock__') else one
        for one in found if one.__module__ != 'typing'] or [object]


def show_arguments(app, what, name, obj, options, shown, returned):
    """Show what the constructor of a class takes, of a protocol nothing."""
    if what != 'class' or shown is None:
        return None
    if vars(obj).get('_is_protocol'):
        return '', None
    try:
        signature = signature_of(obj)
    except ValueError:
        return None
    text = stringify_signature(signature, show_annotation=False)
    return re.sub(r"<class '(\w+)'>", r'\1', text), None


def list_keys(app, what, name, obj, options, lines):
    """List the keys of a dict of keyword arguments, and their types."""
    if is_typeddict(obj):
        for key, hint in obj.__annotations__.items():
            lines.append(f'- ``{key}: {_as_text(hint)}``')
        lines.append('')


def _as_text(hint):
    return (hint.__forward_arg__ if isinstance(hint, ForwardRef)
            else inspect.formatannotation(hint))


def documented_name(target, module, cls):
    """Return the name under which a page describes a reference's target."""
    scopes = [f'{module}.{cls}.', f'{module}.'] if cls else [f'{module}.']
    head, _, rest = target.partition('.')
    paths = [target, *(scope + target for scope in scopes)]
    if head in short_names():
        paths.append(short_names()[head] + '.' * bool(rest) + rest)
    for path in paths:
        found, parent = find(path) or (None, None)
        if found is None:
            continue
        if id(found) in described():
            return described()[id(found)]
        if inspect.isclass(parent):
            member = path.rpartition('.')[2]
            owner = shown_on(parent, member)
            if owner is not None:
                return f'{described()[id(owner)]}.{member}'
    return None


def resolve(app, env, node, contnode):
    """Find what a reference means that names another path of an object."""
    if node.get('refdomain') != 'py' or not node['reftarget']:
        return None
    name = documented_name(node['reftarget'], node.get('py:module'),
                           node.get('py:class'))
    return name and env.domains['py'].resolve_xref(
        env, node['refdoc'], app.builder, 'obj', name, node, contnode)


def leave_words(app, doctree):
    """Keep English words in the types of parameters as they are; names of
    classes stay references."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get('refdomain') == 'py' and node['reftype'] == 'class' and (
                not isinstance(node.children[0], nodes.literal)):
            target = node['reftarget']
            if ' ' not in target and ('.' in target or (
                    target[:1].isupper() and target not in CONSTANTS)):
                # No member of any class is meant, as in `shape`.
                node['refspecific'] = False
            else:
                node.replace_self(nodes.emphasis('', node.astext()))


def source_module(app, module, attribute):
    """Return where a class is written whose module is the public one."""
    name = attribute.partition('.')[0]
    found = find(f'{module}.{name}')
    return found and next((
        holder for holder in sorted(sys.modules) if holder.startswith('fuel')
        and vars(sys.modules[holder]).get(name) is found[0] and re.search(
            rf'^(class|def) {name}\b', _source(holder), re.MULTILINE)), None)


@functools.cache
def _source(module):
    file = getattr(sys.modules[module], '__file__', None) or ''
    return Path(file).read_text('utf-8') if file.endswith('.py') else ''


def shorten_navigation(app, page, template, context, doctree):
    """Leave the pages of classes out of the sidebar of every page: the lists
    of docs/api lead to them."""
    if 'toctree' in context:
        whole = context['toctree']
        context['toctree'] = lambda **options: whole(
            **{**options, 'maxdepth': 2})


def break_names(app, page, template, context, doctree):
    """Let dotted names in titles, and in the links to the pages before and
    after, break after their dots, and options nowhere."""
    body = re.sub(r'(?<=<h1>)fuel\.[\w.]+', _breakable,
                  context.get('body', ''))
    context['body'] = SHORT_WORD.sub('<span class="pre unbroken">', body)
    for way in ('prev', 'next'):
        link = context.get(way)
        if link:
            context[way] = {**link, 'title': re.sub(
                r'^fuel\.[\w.]+', _breakable, link['title'])}


def _breakable(found):
    return found[0].replace('.', '.<wbr>')


def remove_stale(app):
    """Remove pages of names that are in no list any more."""
    names = set(listed_names())
    for page in GENERATED.glob('*.rst'):
        if page.stem not in names:
            page.unlink()


def prepare(app, config):
    """Mock the libraries that autodoc does without; give the template of a
    class what it shows of bases."""
    MOCKED[:] = config.autodoc_mock_imports
    classes = [name for name in listed_names()
               if inspect.isclass(find(name)[0])]
    config.autosummary_context = {
        'other_members': {name: other_members(name) for name in classes},
        'inherited': {name: list(inherited(name)) for name in classes}}


def setup(app):
    """Connect to autosummary, autodoc, viewcode and references."""
    app.connect('config-inited', prepare)
    app.connect('builder-inited', remove_stale, priority=100)
    app.connect('autodoc-process-bases', public_bases)
    app.connect('autodoc-process-signature', show_arguments)
    app.connect('autodoc-process-docstring', list_keys)
    app.connect('viewcode-follow-imported', source_module)
    app.connect('doctree-read', leave_words)
    # Before the theme reads it.
    app.connect('html-page-context', shorten_navigation, priority=100)
    app.connect('html-page-context', break_names)
    # After intersphinx.
    app.connect('missing-reference', resolve, priority=900)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}

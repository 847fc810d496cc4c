"""The stages that the API index of the manual lists."""
import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows_of_table(page, before):
    """Return the cells of each row of a table of two columns in the manual.

    `before`: text that comes before the table.
    """
    text = (ROOT / 'docs' / f'{page}.rst').read_text('utf-8')
    text = text.partition(before)[2].split('.. list-table::')[1]
    rows = re.findall(
        r'^   \* - ((?:.+\n)+?)     - ((?:.+\n)+?)(?=   \* - |\n)', text,
        re.MULTILINE)
    return [(head.strip(), cell) for head, cell in rows[1:]]


def classes():
    """Return the bases and the `takes_masked` of all classes of Fuel."""
    found = {}
    for path in (ROOT / 'fuel').rglob('*.py'):
        for node in ast.parse(path.read_text('utf-8')).body:
            if isinstance(node, ast.ClassDef):
                says = [part.value.value for part in node.body if isinstance(
                    part, (ast.Assign)) and 'takes_masked' in [
                        getattr(target, 'id', '') for target in part.targets]]
                found[node.name] = ([getattr(base, 'id', getattr(
                    base, 'attr', '')) for base in node.bases], says)
    return found


def line_of(name, known):
    """Return a class and all that it is derived from."""
    return [name, *(above for base in known.get(name, ((), ()))[0]
                    for above in line_of(base, known))]


LISTED = {name.rsplit('.', 1)[-1]
          for page in (ROOT / 'docs' / 'api').glob('*.rst')
          for name in re.findall(r'^   ([\w.]+\.\w+)$', page.read_text(
              'utf-8'), re.MULTILINE)}
CLASSES = classes()
STAGES = sorted(name for name in LISTED & CLASSES.keys()
                if 'AbstractDataStream' in line_of(name, CLASSES))

"""A pipeline as a graph, for Graphviz."""
from __future__ import annotations

import os

from fuel.utils.arguments import is_dataset
from fuel.describe.pipeline import (
    HERE, Described, described, short, source_text)

# Seconds that Graphviz may take.
TIMEOUT = 60.


class PipelineGraph:
    r"""A drawing of a pipeline.

    ``str(graph)`` is the text that Graphviz takes; a notebook shows the
    drawing, where Graphviz is installed.

    Parameters
    ----------
    stream : AbstractDataStream

    Attributes
    ----------
    source : str
        In Graphviz's language.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IterableDataset([1, 2]))
    >>> print(stream.describe())
    digraph pipeline {
      node [shape=box, fontname="sans-serif"];
      stage0 [label="DataStream\ndata\n2 examples"];
      stage1 [label="IterableDataset\ndata\n2 examples", shape=cylinder];
      stage1 -> stage0;
    }
    """

    def __init__(self, stream: object) -> None:
        self.title = short(stream)
        self.source = _source(described(stream))

    def __str__(self) -> str:
        return self.source

    def __repr__(self) -> str:
        return f'<{type(self).__name__} of {self.title}>'

    def svg(self) -> str:
        """Return the drawing.

        Returns
        -------
        str
            In SVG.

        Raises
        ------
        FileNotFoundError
            If Graphviz, the command ``dot``, is not installed.
        """
        import subprocess
        dot = _find_dot()
        if dot is None:
            raise FileNotFoundError(
                "drawing needs Graphviz: install it, so that there is a "
                "command 'dot'; str() of this object is the text that it "
                'takes')
        return subprocess.run(  # noqa: S603 (the path of an installed dot)
            [dot, '-Tsvg'], input=self.source, capture_output=True,
            check=True, text=True, timeout=TIMEOUT).stdout

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the drawing, or the text that Graphviz takes.

        Parameters
        ----------
        path : str
            Ends in ``.svg`` for the drawing.
        """
        from fuel.utils.atomic_files import write_text
        name = os.fspath(path)
        write_text(
            name, self.svg() if name.endswith('.svg') else self.source)

    def _repr_svg_(self) -> str | None:
        return None if _find_dot() is None else self.svg()


def _find_dot() -> str | None:
    # Not imported above: with what it imports itself it takes as long as
    # any other module, and few draw.
    import shutil
    return shutil.which('dot')


def _source(stages: list[Described]) -> str:
    lines = ['digraph pipeline {',
             '  node [shape=box, fontname="sans-serif"];']
    for stage in stages:
        label = '\\n'.join(map(_quoted, [
            stage.name, *map(source_text, stage.sources), stage.items,
            *stage.details, *[stage.runs_in] * (stage.runs_in != HERE)]))
        shape = ', shape=cylinder' if is_dataset(stage.subject) else ''
        lines.append(f'  stage{stage.number} [label="{label}"{shape}];')
    lines += [f'  stage{stage.number} -> stage{stage.parent};'
              for stage in stages if stage.parent is not None]
    return '\n'.join([*lines, '}'])


def _quoted(text: str) -> str:
    return text.replace('\\', '\\\\').replace('"', '\\"')

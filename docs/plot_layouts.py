"""Draw ``layouts.png``, and ``layouts_dark.png`` for dark pages, from
``layouts.json``.

The numbers are what ``benchmarks/hdf5.py`` prints last::

    python benchmarks/hdf5.py | sed -n '/^{/,$p' > docs/layouts.json
    python docs/plot_layouts.py

"""
import json
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy

FOLDER = Path(__file__).parent
SERIES = {'h5py': 'tab:gray', 'PyTorch': 'tab:orange',
          'Fuel, first epoch': 'lightskyblue', 'Fuel': 'tab:blue',
          'numpy.take': 'gainsboro'}


def label(rate):
    """Return a number of examples as on a bar."""
    if not rate > 0:
        return ''
    if rate >= 10 ** 6:
        return f'{rate / 10 ** 6:.1f}M'
    return f'{rate / 1000:.0f}k' if rate >= 10 ** 4 else f'{rate:.0f}'


def main():
    """Draw both pictures."""
    matplotlib.use('Agg')
    rates = json.loads((FOLDER / 'layouts.json').read_text('utf-8'))
    draw(rates, FOLDER / 'layouts.png')
    with plt.style.context('dark_background'):
        draw(rates, FOLDER / 'layouts_dark.png')


def draw(rates, path):
    """Draw grouped bars, one group for each layout, on the page's ground."""
    shown = [name for name in SERIES
             if any(name in found for found in rates.values())]
    width = 0.8 / len(shown)
    figure, axes = plt.subplots(figsize=(8, 4))
    for place, name in enumerate(shown):
        heights = [found.get(name, numpy.nan) for found in rates.values()]
        bars = axes.bar(numpy.arange(len(rates)) + (place + 0.5) * width - 0.4,
                        heights, width, label=name, color=SERIES[name])
        axes.bar_label(bars, [label(height) for height in heights],
                       fontsize=7)
    axes.set_yscale('log')
    axes.set_xticks(range(len(rates)), list(rates))
    axes.set_ylabel('examples per second')
    axes.legend(fontsize=8, ncols=len(shown), frameon=False,
                loc='lower center', bbox_to_anchor=(0.5, 1.02))
    axes.spines[['top', 'right']].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110, transparent=True)


if __name__ == '__main__':
    main()

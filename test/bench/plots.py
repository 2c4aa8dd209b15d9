# SPDX-License-Identifier: BSD-3-Clause
"""The report as pictures: SVG by gnuplot."""
import itertools
import os
import subprocess

from figures import find, one
from link import Failure
from report import size_text

HEAD = """set terminal svg noenhanced size 1000,520 font 'sans,13' background '#ffffff'
set output '{path}'
set title '{title}'
set grid ytics lc rgb '#dddddd'
set key outside right top Left reverse
"""

# Each curve has a colour, a point shape and a dash pattern. The colours alternate between dark and
# light, and no shape repeats within twelve curves, so that curves differ in grey as well.
COLOURS = ('#000000', '#e69f00', '#0050a0', '#56b4e9', '#8b1a1a', '#3cb371',
           '#6a3d9a', '#cc79a7', '#005f4b', '#b8860b', '#7f7f7f', '#d55e00')
SHAPES = (7, 4, 9, 6, 5, 8, 13, 10, 11, 12, 2, 1)
DASHES = (1, 2, 4)


def styles():
    """A gnuplot style for each curve of a plot in turn."""
    for i in itertools.count():
        yield (f"lw 2 lc rgb '{COLOURS[i % len(COLOURS)]}' pt {SHAPES[i % len(SHAPES)]} ps 0.9 "
               f'dt {DASHES[i % len(DASHES)]}')


def text(word):
    return "'" + str(word).replace("'", '') + "'"


def gnuplot(path, title, script):
    done = subprocess.run(['gnuplot'], input=HEAD.format(path=path, title=title) + script, text=True,
                          capture_output=True, check=False)
    if done.returncode or not os.path.exists(path):
        raise Failure(f'gnuplot cannot make {path}: {done.stderr.strip()[-200:]}')


def lines(path, title, ylabel, curves):
    """curves: name -> [(size, value)]"""
    sizes = sorted({size for points in curves.values() for size, _ in points})
    tics = ', '.join(f'{text(size_text(s))} {s}' for s in sizes)
    script = f"set logscale xy\nset xtics ({tics})\nset xlabel 'message'\nset ylabel {text(ylabel)}\n"
    plots = []
    for i, ((name, points), style) in enumerate(zip(curves.items(), styles())):
        script += f'$d{i} << EOD\n' + ''.join(f'{s} {v}\n' for s, v in sorted(points)) + 'EOD\n'
        plots.append(f'$d{i} using 1:2 with linespoints {style} title {text(name)}')
    gnuplot(path, title, script + 'plot ' + ', '.join(plots) + '\n')


def bars(path, title, ylabel, values):
    """values: [(name, value)]"""
    script = (f"set style fill solid 0.8\nset boxwidth 0.6\nunset key\nset yrange [0:*]\nset offsets 0, 0, graph 0.1, 0\nset ylabel {text(ylabel)}\n"
              "set xtics rotate by -25\nset bmargin 6\nset rmargin 8\n$d << EOD\n")
    script += ''.join(f'{i} "{name}" {value}\n' for i, (name, value) in enumerate(values)) + 'EOD\n'
    gnuplot(path, title, script + "plot $d using 1:3:xtic(2) with boxes lc rgb '#3b6ea8', "
            "'' using 1:3:(sprintf('%.3g', $3)) with labels offset 0,0.7\n")


def path_plots(figures, out):
    for memory in ('512K', '256M'):
        found = find(figures, bench='path', op='write', qps=1, memory=memory)
        if not found:
            continue
        most = max(f['list'] for f in found)
        found = [f for f in found if f['list'] == most]
        curves = {'floor': [(f['size'], f['floor_tx'] + f['floor_rx']) for f in found],
                  'WRITE': [(f['size'], f['median']) for f in found]}
        for op in ('send', 'read'):
            curves[op.upper()] = [(f['size'], f['median']) for f in
                                  find(figures, bench='path', op=op, qps=1, memory=memory, list=most)]
        curves = {name: points for name, points in curves.items() if points}
        lines(f'{out}/path-{memory}.svg', f'Both ends on one core, {memory} of application memory',
              'ns a message', curves)
        yield f'path-{memory}.svg'


def qps_plot(figures, out):
    curves = {}
    for f in find(figures, bench='path', op='write', memory='512K'):
        curves.setdefault(f"{f['qps']:,.0f} QPs, lists of {f['list']:.0f}", []).append((f['size'], f['median']))
    if curves:
        lines(f'{out}/qps.svg', 'WRITE by number of QPs, both ends on one core', 'ns a message', curves)
        yield 'qps.svg'


def veth_plots(figures, out):
    for what, unit in (('latency', 'us, one way'), ('rate', 'Gb/s')):
        curves = {}
        for f in find(figures, bench='veth', what=what):
            if f['op'] == 'send':  # as fast as WRITE
                continue
            curves.setdefault(f['who'], []).append((f['size'], f['median']))
        if curves:
            lines(f'{out}/veth-{what}.svg', f'veth pair: {what}', unit, curves)
            yield f'veth-{what}.svg'


def link_plots(figures, out):
    for what, size, unit in (('round trip', 64, 'us'), ('rate', 4096, 'Gb/s')):
        whos = dict.fromkeys(f['who'] for f in find(figures, bench='link'))
        values = [(who, f['median']) for who in whos
                  if (f := one(figures, bench='link', who=who, what=what, op='write', size=size))]
        if values:
            name = f"link-{what.replace(' ', '-')}.svg"
            bars(f'{out}/{name}', f'WRITE of {size_text(size)}: {what}', unit, values)
            yield name


def draw(figures, out):
    """@return the names of the files made."""
    return [name for part in (path_plots, qps_plot, veth_plots, link_plots) for name in part(figures, out)]

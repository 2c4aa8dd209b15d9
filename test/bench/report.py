# SPDX-License-Identifier: BSD-3-Clause
"""The report as text."""
import goals
import machine
from figures import advantage, find, key

RULE = '-' * 100


def number(value):
    if value is None:
        return '-'
    if abs(value) >= 1000:
        return f'{value:,.0f}'
    return f'{value:.3g}' if abs(value) < 1 else f'{value:.4g}'


def size_text(size):
    return f'{size >> 10} KiB' if size >= 1024 and size % 1024 == 0 else f'{size} B'


def table(head, rows):
    """Left the first column, right the others."""
    rows = [head] + [[str(cell) for cell in row] for row in rows]
    width = [max(len(row[i]) for row in rows) for i in range(len(head))]
    text = []
    for row in rows:
        cells = [row[0].ljust(width[0])] + [cell.rjust(w) for cell, w in zip(row[1:], width[1:])]
        text.append(('  ' + '  '.join(cells)).rstrip())
    return text[:1] + ['  ' + '-' * (sum(width) + 2 * len(width) - 2)] + text[1:]


def goals_part(report):
    rows = []
    for g in report['goals']:
        met = {True: 'met', False: 'NOT met', None: 'not measured'}[g['met']]
        rows.append([g['name'], f"{g['wanted']} {g['limit']} {g['unit']}", number(g['value']), met])
    return ['Goals', ''] + table(['', 'wanted', 'measured', ''], rows)


def path_part(report):
    paths = find(report['figures'], bench='path')
    rows = [[f['op'].upper(), size_text(f['size']), f['memory'], f"{f['qps']:,.0f}", f"{f['list']:.0f}",
             number(f['median']), number(f['min']), number(f['mmsg_s']), number(f['gbit_s']),
             number(f['floor_tx'] + f['floor_rx']), number(f['ratio_to_floor'])] for f in paths]
    return ['One message from application to application, both ends and all between on one core, over net_ring',
            ''] + table(['', 'size', 'memory', 'QPs', 'list', 'ns', 'least', 'M/s', 'Gb/s', 'floor ns',
                         'x floor'], rows)


def latency_part(report):
    rows = [[f"{f['op'].upper()}, {f['threads']}", size_text(f['size']), number(f['median']), number(f['p99']),
             number(f['min'])] for f in find(report['figures'], bench='latency')]
    return ['Ping-pong over net_ring, one way', ''] + table(['', 'size', 'ns', 'p99', 'least'], rows)


def cores_part(report):
    rows = [[f['op'].upper(), size_text(f['size']), f"{f['workers']:.0f}", number(f['median']), number(f['gbit_s']),
             number(f.get('kept'))] for f in find(report['figures'], bench='cores')]
    return ['Workers on CPUs of their own, each with both ends of a connection and their programs, over net_ring; kept: '
            'of the rate of each alone', ''] + table(['', 'size', 'workers', 'M/s', 'Gb/s', 'kept'], rows)


def register_part(report):
    rows = [[f['what'], size_text(f['size']), number(f['median']), number(f['min']), f['unit']]
            for f in find(report['figures'], bench='register')]
    return ['Registering memory', ''] + table(['', 'size', 'median', 'least', ''], rows)


def instr_part(report):
    rows = [[f['op'].upper(), size_text(f['size']), number(f['median']), number(f['protocol']), number(f['bulk'])]
            for f in find(report['figures'], bench='instr')]
    return ['Instructions per message, both ends, and per idle round (callgrind; copies and CRCs without AVX-512)', ''] + table(
        ['', 'size', 'all', 'protocol', 'copy and CRC'], rows)


def lab_part(report):
    rows = [[f['who'], f['what'], number(f['median']), number(f['min'])] for f in find(report['figures'], bench='lab')]
    return ['The laboratory: us of CPU', ''] + table(['', '', 'median', 'least'], rows)


def local_part(report):
    rows = [[f['who'], f"{f['op'].upper()} {f['what']}", size_text(f['size']), f['unit'], number(f['median']),
             number(f['best'])] for f in find(report['figures'], bench='local')]
    text = ['Two queue pairs of one port of one rocid; one thread is both ends', '']
    text += table(['', 'figure', 'size', '', 'median', 'best'], rows)
    return text + ['', '  two workers: each queue pair has its own. one beside the program: for lack of a third CPU '
                   'a worker and the program share one by yielding.']


def link_part(report):
    rows = []
    for f in find(report['figures'], bench='link'):
        rows.append([f['who'], f"{f['op'].upper()} {f['what']}", size_text(f['size']), f['unit'],
                     number(f['median']), number(f['best']), number(f.get('p99'))])
    text = ['Two processes, a CPU each', '']
    text += table(['', 'figure', 'size', '', 'median', 'best', 'p99'], rows)
    text += ['', '  one thread: worker and application are one thread. daemon: rocid and a program share the CPU '
             'by yielding.']
    for (who, what, unit, size), value in goals.ELSEWHERE.items():
        if 'memif' in who:
            text.append(f'  elsewhere: {who}, {size_text(size)} {what} {value} {unit}')
    return text


def veth_part(report):
    veth = find(report['figures'], bench='veth')
    text = ['A veth pair between two namespaces: ours and what a user would take instead', '']
    for what, unit in goals.VETH_WHATS:
        sizes = sorted({f['size'] for f in veth if f['what'] == what})
        whos = list(dict.fromkeys(f['who'] for f in veth if f['what'] == what))
        whos += [w for w, x, _, s in goals.ELSEWHERE if x == what and s in sizes and w not in whos]
        head = [f"{what}{', one way' if what == 'latency' else ''}, {unit}"]
        for size in sizes:
            head += [size_text(size), 'elsewhere']
        rows = []
        for who in dict.fromkeys(whos):
            row = [who]
            for size in sizes:
                found = find(veth, who=who, what=what, size=size)
                row += [number(found[0]['median'] if found else None),
                        number(goals.ELSEWHERE.get((who, what, unit, size)))]
            rows.append(row)
        text += table(head, rows) + ['']
    text += [f'  {who}, {size_text(size)} {what}, elsewhere: {note}'
             for (who, what, _, size), note in goals.NOTES.items()]
    return text


def ipoib_part(report):
    rows = [[f['who'], f['what'], f['unit'], number(f['median']), number(f['best'])]
            for f in find(report['figures'], bench='ipoib')]
    return ['TCP and ping over a veth pair with IP packets of 2044 bytes: the kernel, and IP over InfiniBand between two '
            'rocid (--idle yield), or two ports of one', ''] + table(
        ['', '', '', 'median', 'best'], rows)


def cm_part(report):
    rows = [[f['who'], f['what'], f"{f['size']:,}", f['unit'], number(f['median']), number(f['best'])]
            for f in find(report['figures'], bench='cm')]
    return ['Connections by RDMA CM over a veth pair, with the stock librdmacm; size is bytes, or connections', ''] + table(
        ['', '', 'size', '', 'median', 'best'], rows)


def mpi_part(report):
    found = find(report['figures'], bench='mpi')
    text = ['Open MPI, a rank in each of two namespaces on a veth pair (a ping-pong one way): UCX rc_verbs over rocid, '
            'UCX tcp, Open MPI tcp; UCX alone by ucx_perftest: an active message one way, and the rate of many', '']
    for what in dict.fromkeys(f['what'] for f in found):
        sizes = sorted({f['size'] for f in found if f['what'] == what})
        rows = []
        for who in dict.fromkeys(f['who'] for f in found):
            row = [find(found, who=who, what=what, size=size) for size in sizes]
            rows.append([who, *(number(f[0]['median'] if f else None) for f in row)])
        unit = next(f['unit'] for f in found if f['what'] == what)
        text += table([f'{what}, {unit}', *map(size_text, sizes)], rows) + ['']
    return text


def shortened_part(report):
    return ['Shortened', ''] + ['  ' + sentence for sentence in report['shortened']]


def skipped_part(report):
    return ['Not measured', ''] + ['  ' + sentence for sentence in report['skipped']]


def base_part(report):
    base = {key(f): f for f in report['base']['figures']}
    rows = []
    for f in report['figures']:
        then = base.get(key(f))
        if not then or not then['median'] or not f['median']:
            continue
        what = ' '.join(str(f[name]) for name in ('who', 'what', 'op', 'memory', 'threads') if f.get(name))
        qps = f" {f['qps']:,.0f} QPs, lists of {f['list']:.0f}" if 'qps' in f else ''
        qps += f" {f['workers']:.0f} workers" if 'workers' in f else ''
        rows.append([f"{f['bench']}: {what} {size_text(f['size'])}{qps}", f['unit'], number(then['median']),
                     number(f['median']), f"{advantage(f['median'], then['median'], f['unit']):.2f}"])
    m = report['base']['machine']
    return [f"Against {report['base']['path']} ({m['commit']}, {m['date']}, {m['cpu']}); more than 1 is faster now",
            ''] + table(['', '', 'then', 'now', 'x'], rows)


def text(report):
    parts = [['Rocinante: benchmark' + (' (QUICK: see what was shortened)' if report['quick'] else '')]
             + machine.lines(report['machine'])]
    if report['shortened']:
        parts.append(shortened_part(report))
    parts.append(goals_part(report))
    for bench, part in (('path', path_part), ('latency', latency_part), ('cores', cores_part), ('register', register_part),
                        ('instr', instr_part), ('lab', lab_part), ('local', local_part),
                        ('link', link_part), ('veth', veth_part),
                        ('ipoib', ipoib_part), ('cm', cm_part), ('mpi', mpi_part)):
        if find(report['figures'], bench=bench):
            parts.append(part(report))
    if report['skipped']:
        parts.append(skipped_part(report))
    if 'base' in report:
        parts.append(base_part(report))
    return f'\n{RULE}\n'.join('\n'.join(part) for part in parts) + '\n'

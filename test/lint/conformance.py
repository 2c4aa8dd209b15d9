#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""conformance.py

doc/conformance.md tells the truth: each rule is cited in the code files of its row and in the tests that its
row names. A row whose code says `later: what` waits for a feature; `nothing: why` is a rule that no code obeys
because something is left out, and it has a test nevertheless.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOC = 'doc/conformance.md'
ROW = re.compile(r'^\| ([A-Z0-9]+-\d+) \| (.*) \| (.*?) \| (.*?) \|$', re.M)


def sources(test):
    """The files of a test that doc/conformance.md names."""
    folder, _, name = test.partition('/')
    if folder == 'sim':
        return sorted((ROOT / 'test/sim').glob(f'{name}*.c'))
    if folder in ('golden', 'func', 'interop'):
        return sorted(p for p in (ROOT / 'test' / folder).iterdir() if p.is_file())
    return [ROOT / 'test/unit' / folder / f'{name}_test.c']


def passage(text, case):
    """The function, or the table row, of that name, with the comment above it; '' if there is none."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if re.match(rf'(static )?\w+ \**{re.escape(case)}\(', line):
            first, last = i, i
            while first and lines[first - 1].startswith(('/*', ' *', '//', 'static')):
                first -= 1
            while last < len(lines) and not lines[last].startswith('}'):
                last += 1
            return '\n'.join(lines[first:last])
    for i, line in enumerate(lines):
        if re.search(rf'["\']{re.escape(case)}["\']', line):
            first, last = i, i
            while first and lines[first - 1].strip() and not lines[first - 1].strip().startswith('}'):
                first -= 1
            while last + 1 < len(lines) and lines[last].strip() and not lines[last].strip().startswith('}'):
                last += 1
            return '\n'.join(lines[first:last + 1])
    return ''


def cites(text, rule):
    return re.search(rf'\b{rule}\b', text)


def look(rule, code, tests):
    """What is wrong with a row, as sentences."""
    if code.startswith('later: '):
        return
    if not code or not tests:
        yield 'names no code' if not code else 'names no test'
        return
    for name in [] if code.startswith('nothing: ') else code.split(', '):
        path = ROOT / name
        if not path.is_file() or not cites(path.read_text(), rule):
            yield f'{name} does not cite it'
    for entry in tests.split('; '):
        test, _, case = entry.partition(': ')
        files = [p for p in sources(test) if p.is_file()]
        if not case or not files:
            yield f'"{entry}" is no test and case'
        elif not any(cites(passage(p.read_text(errors='replace'), case), rule) for p in files):
            yield f'{entry} does not exist or does not cite it'


def main():
    bad = 0
    rows = ROW.findall((ROOT / DOC).read_text())
    for rule, _, code, tests in rows:
        for sentence in look(rule, code.strip(), tests.strip()):
            print(f'{DOC}: {rule}: {sentence}')
            bad += 1
    print(f'conformance: {len(rows)} rules, {bad} offences')
    return bad != 0 or not rows


if __name__ == '__main__':
    sys.exit(main())

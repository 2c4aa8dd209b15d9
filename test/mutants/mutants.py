# SPDX-License-Identifier: BSD-3-Clause
"""Seeded bugs, as they are written down: rows in *.mutants beside the unit tests, and patches beside this file.

A row names its bug, its rule and tests of `meson test --list` that catch it, with what fails in each of them. Then
come lines that it takes out (-) of its group's file, puts in (+) or leaves (a blank before them), as in a patch, but
found by their text, which must be there once.

    file lib/core/responder.c

    mutant rsp-12-empty-read-needs-a-key
    rule RSP-12
    bug the R_Key of an empty READ is checked
    test core/responder responder_rx__empty_write_and_read_need_no_key
    -	if (!pkt->dma_len) /* RSP-12, C9-88 */
    +	if (!pkt->dma_len && pkt->op->kind == KIND_WRITE)

A mutant that changes several places is a patch (-p1) with `Rule:`, `Bug:` and `Test:` lines at its head.
"""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FAULT_TESTS = re.compile(r'golden/|sim/scenario|sim/chaos')


class Malformed(Exception):
    """A sentence that says which line of which file is wrong."""


class Mutant:
    """`where` is the file it is written in, `files` are those that it changes."""

    def __init__(self, where, name, fields):
        self.where, self.name = where, name
        self.rule, self.bug = ' '.join(fields.get('rule', [])), ' '.join(fields.get('bug', []))
        self.catchers = [(*t.split(None, 1), None)[:2] for t in fields.get('test', [])]
        if not (self.rule and self.bug and self.catchers):
            raise Malformed(f'{where}: {name}: say its rule, its bug and a test that catches it')
        self.fault = any(FAULT_TESTS.match(t) for t, _ in self.catchers)


class Row(Mutant):
    def __init__(self, where, file, name, fields, edit):
        super().__init__(where, name, fields)
        if not file:
            raise Malformed(f'{where}: {name}: no line `file PATH` stands above it')
        self.files = [file]
        self.old = [line[1:] for line in edit if line[0] != '+']
        self.new = [line[1:] for line in edit if line[0] != '-']
        if not self.old or self.old == self.new:
            raise Malformed(f'{where}: {name}: its lines change nothing, or are found nowhere')
        self.text = (file, tuple(edit))
        self.before = None      # the file, while the bug is planted

    def places(self, root):
        """(the lines of the file, where in it the text is)"""
        path = root / self.files[0]
        lines = path.read_text().split('\n') if path.is_file() else []
        n = len(self.old)
        return lines, [i for i in range(len(lines)) if lines[i:i + n] == self.old]

    def stale(self, root):
        """What is wrong, or an empty text."""
        found = len(self.places(root)[1])
        return '' if found == 1 else f'its text is {found} times in {self.files[0]}, not once: renew it'

    def plant(self, root):
        """In the tree at root. What is wrong, or an empty text."""
        lines, places = self.places(root)
        if len(places) != 1:
            return self.stale(root)
        self.before = '\n'.join(lines)
        lines[places[0]:places[0] + len(self.old)] = self.new
        (root / self.files[0]).write_text('\n'.join(lines))
        return ''

    def pull(self, root):
        if self.before is not None:
            (root / self.files[0]).write_text(self.before)
            self.before = None


class Patch(Mutant):
    def __init__(self, path):
        head, found, diff = path.read_text().partition('\n--- ')
        fields = {}
        for key, value in re.findall(r'^(Rule|Bug|Test): +(.+?) *$', head, re.M):
            fields.setdefault(key.lower(), []).append(value)
        super().__init__(path.relative_to(ROOT), path.stem, fields)
        self.path = path
        self.files = re.findall(r'^--- a/(\S+)', found + diff, re.M)
        self.text = diff

    def patch(self, root, *more):
        words = ['patch', '-p1', '--no-backup-if-mismatch', '-s', '-d', root, '-i', self.path, *more]
        said = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return f'it does not apply: renew it\n{said.stdout}' if said.returncode else ''

    def stale(self, root):
        return self.patch(root, '--dry-run')

    def plant(self, root):
        return self.patch(root)

    def pull(self, root):
        self.patch(root, '-R')


def rows(where, text):
    """The mutants of one file of rows."""
    file, name, fields, edit = None, None, {}, []
    for number, line in enumerate(text.split('\n') + [''], 1):
        key, _, value = line.partition(' ')
        if line and line[0] in ' -+' and name:
            edit.append(line)
        elif key in ('rule', 'bug', 'test') and name and value and not edit:
            fields.setdefault(key, []).append(value)
        elif key == 'mutant' and value and not name:
            name = value
        elif key == 'file' and value and not name:
            file = value
        elif not line:
            if name:
                yield Row(where, file, name, fields, edit)
            name, fields, edit = None, {}, []
        elif key[0] != '#' or name:
            raise Malformed(f'{where}:{number}: this line says nothing that is known here: {line}')


def load(root=ROOT):
    """All mutants by name."""
    found = {}
    every = [Patch(p) for p in sorted((root / 'test/mutants').glob('*.patch'))]
    for path in sorted((root / 'test').rglob('*.mutants')):
        every += rows(path.relative_to(root), path.read_text())
    for mutant in every:
        if mutant.name in found:
            raise Malformed(f'{mutant.where}: {found[mutant.name].where} has a mutant {mutant.name}, too')
        found[mutant.name] = mutant
    return [found[name] for name in sorted(found)]

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""conformance.py [--write FILE]

Checks the tags that connect each rule of doc/rules.tsv with the code that obeys it and the tests that prove it. The
code is where a comment of lib/, app/ or drivers/ names the rule; the test where a comment of test/ says `proves` and
the rule:

    /* proves RSP-12, RSP-13: a WRITE of no bytes needs no key */       above a function, in it, or in a row of a table
    # proves RSP-12                                                     the same in Python and shell

A decision obeys the rules that its text names. doc/rules_notes.tsv says why a rule is open, and which rules need no
code, or are void: nothing here could break them. A tag must name a rule, and a test must be run.
--write also writes the list of all rules, their code and their tests to FILE, as `make conformance` does.
"""
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from fnmatch import fnmatch
from pathlib import Path

from tags import HASH, Source

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'test/mutants'))
import mutants
CODE = ('lib/', 'app/', 'drivers/')
USERS = ('lib/client/include/', 'app/examples/')     # tell users of rules, do not obey them
LIST = r'[A-Z]+\d?-\d+(?:(?:,| and)? [A-Z]+\d?-\d+)*'
INTRO = '''# Conformance: each rule, its code, its test

Made by `make conformance` from `doc/rules.tsv` and tags in the sources.
[contributing.md]({doc}/contributing.md) says how code and tests name their rules.

Levels: M must, S should, O optional (must hold if the feature exists), D to be decided. *Code* says where the rule is
obeyed: file and function, or the decision; `void` rules ask for nothing that exists here. *Test* says what fails if
that code is broken: `core/requester: function` is a function of the Meson test `core/requester`, `sim/scenario: row`
a row of the scenario table. *Bugs* is the number of seeded bugs (`test/mutants/run --list`) that those tests have
caught.

'''


def read(name):
    return (ROOT / name).read_text(errors='replace')


def table(name):
    return [line.split('\t') for line in read(name).splitlines() if line and line[0] != '#']


def files():
    out = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', *CODE, 'test'],
                         cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [f for f in out.splitlines()
            if (f.endswith(('.c', '.h') + HASH) or '.' not in Path(f).name) and not f.startswith('test/lint/')]


class Meson:
    """Which test runs a file."""

    def __init__(self):
        self.known = {}

    def blocks(self, folder):
        if folder not in self.known:
            path = ROOT / folder / 'meson.build'
            self.known[folder] = re.split(r'\n\s*\n', path.read_text()) if path.is_file() else []
        return self.known[folder]

    def test(self, path):
        """Its name, or None."""
        p = Path(path)
        folder, stem = str(p.parent), p.stem
        if folder.startswith('test/unit/'):
            text = '\n'.join(self.blocks(folder))
            name = stem[:-5] if stem.endswith('_test') else stem
            return f'{p.parent.name}/{name}' if re.search(rf"'{name}'|'{p.name}'", text) else None
        if folder == 'test/sim':
            return 'sim/basic' if stem == 'basic_test' else \
                'sim/scenario' if stem.startswith('scenario') else 'sim/chaos'
        if folder.startswith('test/golden'):
            return 'golden/generated-1' if folder.endswith('generate') else 'golden/vectors'
        if folder == 'test/fuzz':
            return 'fuzz'
        for block in self.blocks(folder):
            if re.search(rf"'{re.escape(p.name)}'|'{re.escape(stem)}'", block):
                m = re.search(r"^\s*test\((?:'([^']*)')?", block, re.M)
                if m:
                    return m.group(1) + '*' if re.search(r"test\('[^']*' \+", block) else m.group(1) or stem
        return folder[5:] if folder == 'test/interop' else None


class Tags:
    """What the sources say: of each rule [(file, function)] and [(test, case)]."""

    def __init__(self, rules):
        self.code, self.tests = defaultdict(list), defaultdict(list)
        self.rules, self.wrong, self.meson = rules, [], Meson()
        groups = '|'.join(sorted({r.rsplit('-', 1)[0] for r in rules}))
        self.rule = re.compile(rf'\b(?:{groups})-\d+\b(?!\.\.|\s*\.\.)')
        for name in files():
            self.look(Source(name, read(name)))
        self.decisions = defaultdict(list)
        for path in sorted((ROOT / 'doc/decisions').glob('[0-9]*.md')):
            for rule in set(self.rule.findall(path.read_text())):
                self.decisions[rule].append(path.name)
        self.bugs = Counter()
        for mutant in mutants.load():
            self.bugs.update(self.valid(f'{mutant.where}: {mutant.name}', self.rule.findall(mutant.rule)))

    def valid(self, where, found):
        for rule in found:
            if rule in self.rules:
                yield rule
            else:
                self.wrong.append(f'{where}: there is no rule {rule}')

    def look(self, source):
        for first, last, text in source.comments:
            where = f'{source.path}:{first + 1}'
            if source.path.startswith(CODE):
                if not source.path.startswith(USERS):
                    self.add(self.code, self.valid(where, self.rule.findall(text)), source.path,
                             source.place(first, last))
                continue
            proofs = re.findall(rf'\bproves ({LIST})', text)
            if not proofs:
                continue
            test = self.meson.test(source.path)
            if not test:
                self.wrong.append(f'{where}: proves {proofs[0]}, but no test of a meson.build runs this file')
                continue
            case = source.place(first, last)
            if source.path.startswith('test/unit/') and (not case or source.text.count(case) < 2):
                self.wrong.append(f'{where}: proves {proofs[0]}, but belongs to no test function that is run')
            named = [r for p in proofs for r in re.findall(r'[A-Z]+\d?-\d+', p)]
            self.add(self.tests, self.valid(where, named), test, case)

    @staticmethod
    def add(to, rules, *place):
        for rule in rules:
            if place not in to[rule]:
                to[rule].append(place)


def joined(places):
    """file: function, function; file"""
    grouped = {}
    for name, what in sorted(places, key=lambda p: p[0]):
        grouped.setdefault(name, [])
        if what:
            grouped[name].append(what)
    return '; '.join(f'{name}: {", ".join(dict.fromkeys(w))}' if w else name for name, w in grouped.items())


class Rule:
    def __init__(self, line, tags, notes):
        self.id, self.level, self.says, _ = line
        self.group = self.id.rsplit('-', 1)[0]
        self.decisions, self.bugs = tags.decisions[self.id], tags.bugs[self.id]
        self.code, self.test = joined(tags.code[self.id]), joined(tags.tests[self.id])
        self.none, self.void = notes.get((self.id, 'none')), notes.get((self.id, 'void'))
        if self.void:
            self.done = True
        elif self.level == 'D':
            self.done = bool(self.decisions)
        else:
            self.done = bool(self.test and (self.code or self.none or self.decisions))

    def lacks(self):
        if self.level == 'D':
            return 'a decision'
        return ' and '.join(w for w, there in (('code', self.code or self.decisions), ('a test', self.test))
                            if not there)

    def row(self, doc):
        links = [f'[decision {d[:4]}]({doc}/decisions/{d})' for d in self.decisions]
        code = '; '.join(filter(None, [self.code, self.none and 'none: ' + self.none,
                                self.void and 'void: ' + self.void, *links]))
        says = self.says.replace('|', '\\|')
        return f'| {self.id} | {self.level} | {says} | {code} | {self.test} | {self.bugs or ""} |'


def summary(rules, titles):
    yield '| group | rules | M proven | M open | S proven | S open | O proven | O open | D decided | D open | void |'
    yield '|---|---|---|---|---|---|---|---|---|---|---|'
    for group, title in [*titles.items(), (None, '**all**')]:
        mine = [r for r in rules if group in (r.group, None)]
        cells = [sum(r.level == lv and r.done == done and not r.void for r in mine)
                 for lv in 'MSOD' for done in (True, False)] + [sum(bool(r.void) for r in mine)]
        yield f'| {group + ": " if group else ""}{title} | {len(mine)} | ' + ' | '.join(str(c or '') for c in cells) + ' |'


def document(rules, titles, why, doc):
    yield INTRO.format(doc=doc) + '## Summary\n'
    yield from summary(rules, titles)
    yield '\n## What is open\n\n| rule | level | says | lacks | why |\n|---|---|---|---|---|'
    for r in rules:
        if not r.done:
            says = r.says.replace('|', '\\|')
            yield f'| {r.id} | {r.level} | {says} | {r.lacks()} | {why(r.id) or ""} |'
    for group, title in titles.items():
        mine = [r for r in rules if r.group == group and (r.code or r.test or r.done)]
        if mine:
            yield f'\n## {group}: {title}\n\n| rule | level | says | code | test | bugs |\n|---|---|---|---|---|---|'
            yield from (r.row(doc) for r in mine)


def reason(rule, notes):
    """The line that says why a rule is open: its own before that of its group; None: there is none."""
    fits = [(len(name), name) for name, kind in notes if kind == 'open' and fnmatch(rule, name)]
    return max(fits)[1] if fits else None


def complaints(rules, notes):
    used = {reason(r.id, notes) for r in rules if not r.done}
    for (name, kind), _ in notes.items():
        match = [r for r in rules if fnmatch(r.id, name)]
        if kind not in ('open', 'none', 'void') or not match:
            yield f'doc/rules_notes.tsv: {name} {kind}: say a rule, or GROUP-*, and open, none or void'
        elif kind == 'open' and name not in used:
            yield f'doc/rules_notes.tsv: {name} is not open any more, or has a line of its own: take this one out'
        elif kind != 'open' and any(r.code for r in match):
            yield f'doc/rules_notes.tsv: {name} has code: take its line out'
    for r in rules:
        if not r.done and not reason(r.id, notes):
            yield f'{r.id} lacks {r.lacks()}: tag it, or say in doc/rules_notes.tsv why it is open'


def main():
    lines = table('doc/rules.tsv')
    titles = dict(re.findall(r'^## (\w+)\t(.*)$', read('doc/rules.tsv'), re.M))
    notes = {(name, kind): text for name, kind, text in table('doc/rules_notes.tsv')}
    tags = Tags({line[0] for line in lines})
    rules = [Rule(line, tags, notes) for line in lines]

    def why(rule):
        return notes.get((reason(rule, notes), 'open'))

    wrong = tags.wrong + list(complaints(rules, notes))
    if sys.argv[1:2] == ['--write']:
        out = Path(sys.argv[2]).resolve()
        doc = os.path.relpath(ROOT / 'doc', out.parent)
        out.write_text('\n'.join(document(rules, titles, why, doc)) + '\n')
    for sentence in wrong:
        print(f'conformance: {sentence}', file=sys.stderr)
    done = sum(r.done for r in rules)
    print(f'conformance: {len(rules)} rules, {done} proven or decided, {len(rules) - done} open, {len(wrong)} offences')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

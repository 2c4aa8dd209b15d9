#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs.py

What the documents name is there: links, paths, file names and functions in backquotes, options of the programs'
manual pages; and so are the files that comments in C name. Each cause of a failure is in doc/troubleshooting.md.
Each document is in the index, each decision in its list, and debian/control needs what config/packages.txt does.
"""
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = 'app|config|debian|doc|drivers|lib|test|build'
PATH = re.compile(rf'^(?:{FOLDERS})/[\w./*<>{{}},-]+$')
FILE = re.compile(r'^[\w<>*-]+\.(?:c|h|py|sh|md|conf|txt|map|build)$')
NAME = re.compile(r'^(?:([a-z]\w+)\(\)|([A-Za-z]+(?:_\w+)+))$')  # a function, or anything with an underscore
# Names of the kernel and of the compiler, and placeholders.
ELSEWHERE = {'vectors.json', 'hello.c', 'rxe_comp.c', 'enable_unsafe_noiommu_mode', 'seq_cst', 'module_verb',
             'function__condition'}
COMMENT = re.compile(r'/\*.*?\*/', re.S)
NAMED = re.compile(r'(?<![\w.<>/-])((?:[\w-]+/)*[\w-]+\.(?:c|h|py|md))\b')
# Files of the kernel, of DPDK and of the compiler, which comments name.
FOREIGN = re.compile(r'(?:linux|infiniband|rdma|mm)/|rte_|dpdk-|rxe_')
PLANS = {'doc/decisions/0000-design.md'}  # names what is to come


def tree():
    out = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout
    return [f for f in out.split('\n') if f and (ROOT / f).exists()]


def pattern(path):
    """`<layer>` and `*` stand for anything, `{a,b}` for both."""
    return re.sub(r'<[^>]*>', '*', path).rstrip('/')


def braces(path):
    m = re.search(r'\{([^{}]*)\}', path)
    return [path] if not m else [p for x in m.group(1).split(',')
                                 for p in braces(path[:m.start()] + x + path[m.end():])]


class Tree:
    def __init__(self):
        self.files = tree()
        self.folders = {str(p) for f in self.files for p in Path(f).parents}
        self.names = {Path(f).name for f in self.files}
        self.text = '\n'.join((ROOT / f).read_text(errors='replace') for f in self.files
                              if f.endswith(('.c', '.h', '.py', '.sh', 'meson.build')) or '/' in f and '.' not in Path(f).name)
        self.words = set(re.findall(r'\w+', self.text))

    def has(self, path):
        if path.startswith('build/'):  # a program of some folder's sources
            return str(Path(path[6:]).parent) in self.folders
        return any(fnmatch(f, pattern(path)) for f in self.files) or \
            any(fnmatch(f, pattern(path)) for f in self.folders) or f'{path}.c' in self.files

    def complain(self, quoted):
        """What is wrong with a piece in backquotes, or None."""
        word = quoted.split()[0] if quoted.split() else ''
        if PATH.match(word):
            return next((f'{p} does not exist' for p in braces(word) if not self.has(p)), None)
        if FILE.match(word) and word not in ELSEWHERE:
            if not any(fnmatch(n, pattern(word)) for n in self.names):
                return f'there is no file {word}'
        m = NAME.match(quoted)
        if m and (m.group(1) or m.group(2)) not in self.words | ELSEWHERE:
            return f'nothing is called {quoted}'
        return None


def document(name, t):
    text = (ROOT / name).read_text()
    prose = re.sub(r'^```.*?^```', '', text, flags=re.M | re.S)
    for target in re.findall(r'\]\(([^)#]+)', prose):
        if '://' not in target and not ((ROOT / name).parent / target).exists():
            yield f'links to {target}, which does not exist'
    for quoted in re.findall(r'`([^`\n]+)`', prose) if name not in PLANS else []:
        wrong = t.complain(quoted)
        if wrong:
            yield wrong


def comments(name, t):
    """Files that comments of a C source name."""
    text = (ROOT / name).read_text()
    for file in {f for c in COMMENT.findall(text) for f in NAMED.findall(c) if not FOREIGN.match(f)}:
        if not any(f == file or f.endswith(f'/{file}') for f in t.files):
            yield f'a comment names {file}, which does not exist'


def listed(folder, t):
    """README.md of a folder links to each of its documents."""
    index = (ROOT / folder / 'README.md').read_text()
    for f in t.files:
        if Path(f).parent == Path(folder) and f.endswith('.md') and not f.endswith('README.md'):
            if f']({Path(f).name})' not in index:
                yield f'does not list {Path(f).name}'


def causes():
    """doc/troubleshooting.md has each cause for which QPs fail, by the name that programs get."""
    names = re.findall(r'X\(\w+, "(\w+)", "', (ROOT / 'lib/core/cause.h').read_text())
    told = set(re.findall(r'`(\w+)`', (ROOT / 'doc/troubleshooting.md').read_text()))
    for missing in names:
        if missing not in told:
            yield f'has no row for the cause `{missing}` of lib/core/cause.h'


def packages():
    words = {w for line in (ROOT / 'config/packages.txt').read_text().splitlines()
             for w in line.split('#')[0].split()}
    control = (ROOT / 'debian/control').read_text()
    wants = re.search(r'^Build-Depends:(.*?)^\S', control, re.M | re.S).group(1)
    have = {re.split(r'[\s:(]', x.strip())[0] for x in wants.split(',')}
    for missing in sorted(words - have - {'build-essential'}):
        yield f'Build-Depends lacks {missing}, which config/packages.txt names'


def main():
    t = Tree()
    wrong = [f'{d}: {w}' for d in t.files if d.endswith('.md') for w in document(d, t)]
    wrong += [f'{s}: {w}' for s in t.files if s.endswith(('.c', '.h')) for w in comments(s, t)]
    for folder in ('doc', 'doc/decisions'):
        wrong += [f'{folder}/README.md: {w}' for w in listed(folder, t)]
    wrong += [f'doc/troubleshooting.md: {w}' for w in causes()]
    wrong += [f'debian/control: {w}' for w in packages()]
    for w in wrong:
        print(f'docs: {w}', file=sys.stderr)
    print(f'docs: {len([f for f in t.files if f.endswith(".md")])} documents, {len(wrong)} complaints')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

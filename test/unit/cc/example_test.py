#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""example_test.py DOCUMENT INCLUDE-FOLDER,... COMPILER...: the algorithm that rocilab.md shows compiles as it stands there."""
import subprocess
import sys

BEGIN, END = '    /* SPDX-License-Identifier', '    };'


def example(document):
    """The indented block that begins as a source file does: it ends with the table of operations."""
    lines = open(document, encoding='utf-8').read().splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith(BEGIN))
    table = next(n for n in range(first, len(lines)) if 'const struct cc_ops' in lines[n])
    last = next(n for n in range(table, len(lines)) if lines[n] == END)
    return '\n'.join(line.removeprefix('    ') for line in lines[first:last + 1]) + '\n'


def main(document, folders, *compiler):
    done = subprocess.run([*compiler, '-std=gnu11', '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror', '-fsyntax-only',
                           *('-I' + f for f in folders.split(',')), '-x', 'c', '-'],
                          input=example(document), text=True, check=False)
    sys.exit(done.returncode)


if __name__ == '__main__':
    main(*sys.argv[1:])

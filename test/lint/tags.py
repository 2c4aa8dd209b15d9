# SPDX-License-Identifier: BSD-3-Clause
"""Finds the rules that comments of sources name, and what each comment belongs to."""
import re
from functools import cached_property

HASH = ('.py', '.sh', '.build', '.list')


class Source:
    """A file of C, or of a language whose comments begin with #."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.split('\n')
        self.is_c = path.endswith(('.c', '.h'))

    @cached_property
    def comments(self):
        """[(first line, last line, text)]"""
        return list(self._c_comments() if self.is_c else self._hash_comments())

    def _c_comments(self):
        pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*'
        for m in re.finditer(pattern, self.text, re.S):
            if m.group()[0] == '/':
                first = self.text.count('\n', 0, m.start())
                yield first, first + m.group().count('\n'), re.sub(r'\s*\n\s*\*? ?', ' ', m.group())

    def _hash_comments(self):
        first, words = 0, []
        for i, line in enumerate(self.lines + ['']):
            m = re.match(r'\s*#(?!!)\s?(.*)', line)
            if m:
                first, words = first if words else i, words + [m.group(1)]
                continue
            if words:
                yield first, i - 1, ' '.join(words)
                words = []
            trailing = re.search(r'\s#\s(.*)', line)
            if trailing:
                yield i, i, trailing.group(1)

    def place(self, first, last):
        """What lines first..last, a comment, belong to: a function, a row of a table; '' if to nothing."""
        return self._c_place(first, last) if self.is_c else self._hash_place(first, last)

    # --- C --------------------------------------------------------------------------------

    @cached_property
    def bare(self):
        """The lines without their comments."""
        lines = list(self.lines)
        text = re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*',
                      lambda m: m.group() if m.group()[0] == '"' else re.sub(r'[^\n]', ' ', m.group()),
                      '\n'.join(lines), flags=re.S)
        return [line.rstrip() for line in text.split('\n')]

    @cached_property
    def blocks(self):
        """[(first line, last line, name)] of what stands at the left edge."""
        found, i = [], 0
        while i < len(self.bare):
            line = self.bare[i]
            if re.match(r'[A-Za-z_]', line):
                last = self._end(i)
            elif re.match(r'#\s*define', line):
                last = i
                while self.bare[last].endswith('\\'):
                    last += 1
            else:
                i += 1
                continue
            found.append((i, last, block_name('\n'.join(self.bare[i:last + 1]))))
            i = last + 1
        return found

    def _end(self, i):
        while i < len(self.bare) - 1 and not self.bare[i].endswith((';', '{')):
            i += 1
        if self.bare[i].endswith('{'):
            while i < len(self.bare) - 1 and not self.bare[i].startswith('}'):
                i += 1
        return i

    def _c_place(self, first, last):
        while last + 1 < len(self.lines) and self.lines[last + 1].strip() and not self.bare[last + 1]:
            last += 1                       # comments one below the other
        for begin, end, name in self.blocks:
            if begin <= first <= end:
                return self._row(begin, end, first) or name
            if begin == last + 1:
                return name
        return ''

    def _row(self, begin, end, at):
        """The name of a table's row: its member .name, or its first string."""
        if '(' in self.bare[begin].split('=')[0] or not self.bare[begin].endswith('{'):
            return ''
        first = at
        while first > begin and not re.match(r'\t\{', self.bare[first]) and \
                not (first < at and re.match(r'\t\}', self.bare[first])):
            first -= 1
        if not re.match(r'\t\{', self.bare[first]):
            first = at
            while first < end and not re.match(r'\t\{', self.bare[first]):
                first += 1
        last = first
        while last < end and not re.match(r'\t\}|\t\{.*\},?$', self.bare[last]):
            last += 1
        row = '\n'.join(self.bare[first:last + 1])
        m = re.search(r'\.name = "([^"]*)"', row) or re.search(r'"([^"]*)"', row)
        return m.group(1) if m else ''

    # --- the others -----------------------------------------------------------------------

    def _hash_place(self, first, last):
        code = self.lines[first].split('#')[0].strip() and self.lines[first]    # the comment follows it
        below = code or next((x for x in self.lines[last + 1:] if x.strip()), '')
        m = re.match(r'\s*(?:def|class) (\w+)|(\w+)\(\) ?\{', below)
        if m:
            return m.group(1) or m.group(2)
        if re.match(r'\s*[\[({\'"]|\s*[A-Z]\w+\(', below):
            m = re.search(r'[\'"]([^\'"]+)[\'"]', below)
            if m:
                return m.group(1)
        depth = len(below) - len(below.lstrip())
        for line in reversed(self.lines[:first]):
            indent = len(line) - len(line.lstrip())
            if line.strip() and indent < depth:
                m = re.match(r'\s*def (\w+)', line)
                if m:
                    return m.group(1)
                depth = indent
        return ''


def block_name(text):
    """Of a function, a variable, a type or a macro."""
    m = re.match(r'#\s*define\s+(\w+)', text)
    if m:
        return m.group(1)
    head = re.split(r'[{;]', text, maxsplit=1)[0]
    if '=' in head:
        m = re.search(r'(\w+)\s*(?:\[[^=]*)?$', head.split('=')[0].rstrip())
        return m.group(1) if m else ''
    m = re.search(r'(?!__attribute__|_Static_assert|alignas)\b(\w+)\s*\(', head)
    if m:
        return m.group(1)
    m = re.search(r'(?:struct|union|enum)\s+(\w+)', head) or re.search(r'(\w+)\s*(?:\[.*)?$', head.rstrip())
    return m.group(1) if m else ''

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""words.py [FILE...], or words.py --subject FILE

Plain English, as far as a program can tell: prose of documents has at most 100 columns, rows of tables at most
250 (beyond that use a list or paragraphs), and comments, messages and documents are free of seven phrases that only a translator would write. Looks at the folders and files in
PASSED, or at those named.

--subject: FILE is the message of a commit, as git passes it to a commit-msg hook. Its subject has at most 72
columns, the form "part: what is done", and the same plain English.
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Folders and files that have been edited for language. Add yours when you have done so.
PASSED = ('README.md', 'app', 'config', 'doc', 'drivers', 'lib', 'test')
COLUMNS = 100
ROW_COLUMNS = 250
SUBJECT_COLUMNS = 72

_UNIT = (r'(?:burst|connection|core|entry|file|frame|lcore|line|message|packet|port|program|protocol|queue|QP|round|'
         r'second|session|slot|step|test|thread|tick|turn|user|WQE|work request|worker)')
_COUNT = (r'(?:once|twice|\d[\d,]*|one\s+(?!(?:at|by|for|from|in|of|on|or|to|with)\b)\w*[^s\W]|'
          r'(?:two|three|four|some|several|many|most)\s+\w+s|bytes|packets|SGEs|completions|entries|requests|times)')
PHRASES = (
    (r'(?:\A|[.!?:;]\s+|\n\s*\n\s*)(?:What|Who)(?:ever)?\s(?![^.?!]*\?)',
     'a sentence must not begin with the pronoun "What" or "Who": name the subject'),
    (r'\bwants?\s+(?:an?|the|to|its|no|one|two|more|another)\b', 'write "needs" instead of "wants"'),
    (r'(?<!\bstay )(?<!\bstays )(?<!\bleft )(?<!\bleave )(?<!\bleaves )(?<!\bfall )(?<!\bfalls )\bbehind\b',
     'write "after" instead of "behind", or name the relation'),
    (rf'\b{_COUNT}\s+an?\s+{_UNIT}\b', 'write "per" instead of "a" after a number'),
    (r'\b(?:is|are|was|were|be|been)\s+told\b', 'say who reports it to whom instead of "is told"'),
    (r'\b(?:goes|went|going)\s+on\b(?!\s+(?:the|a|core|its)\b)', 'write "continues" instead of "goes on"'),
    (r'(?:\b(?:by|for|from|of|to|with)\s+who\b|\bas\s+of\s+an?\b)', 'put a noun before "who", and "for" for "as of"'),
)
CODE = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|(/\*.*?\*/|//[^\n]*)', re.S)
HASH = re.compile(r'(?m)^[ \t]*((?:#[^\n]*\n?[ \t]*)+)|[ \t](#[ \t][^\n]*)')


def c_texts(source):
    """(offset, text) of each comment, and of each string that has several words."""
    for m in CODE.finditer(source):
        if m.group(2):
            text = re.sub(r'(?m)^([ \t]*)\*(?!/)', r'\1 ', m.group(2)[2:].removesuffix('*/')).lstrip('*!<')
            yield m.end() - len(text) - (2 if m.group(2).startswith('/*') else 0), text
        elif m.group(1).count(' ') > 1:
            yield m.start() + 1, m.group(1)[1:-1]


def hash_texts(source):
    """The same for the languages whose comments begin with #."""
    for m in HASH.finditer(source):
        yield m.start(), re.sub(r'(?m)^[ \t]*#', lambda h: ' ' * len(h.group(0)), m.group(1) or m.group(2))


def without_code(source):
    source = re.sub(r'(?ms)^[ \t]*```.*?^[ \t]*```', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), source)
    return re.sub(r'(?m)^(?: {4}|\t)[^\n]*', lambda m: ' ' * len(m.group(0)), source)


def document_texts(source):
    """The paragraphs of a document: no code, no headings; a row of a table is one."""
    source = re.sub(r'(?m)^#[^\n]*', lambda m: ' ' * len(m.group(0)), without_code(source))
    source = re.sub(r'`[^`\n]*`', lambda m: 'x' * len(m.group(0)), source)
    for m in re.finditer(r'(?:(?!\n[ \t]*(?:\n|[|*-])).)+', source, re.S):
        yield m.start(), re.sub(r'\A(\s*)[*-](?=\s)', r'\1 ', m.group(0))


def texts(path, source):
    if path.suffix in ('.c', '.h'):
        return c_texts(source)
    return document_texts(source) if path.suffix == '.md' else hash_texts(source)


def complaints(path, source):
    for start, text in texts(path, source):
        lead = len(text) - len(text.lstrip())
        for pattern, advice in PHRASES:
            for m in re.finditer(pattern, text[lead:]):
                found = re.sub(r'\W*\n\W*|\s+', ' ', m.group(0)).strip(' .:;!?')
                at = start + lead + m.end() - len(m.group(0).lstrip(' .:;!?\n\t'))
                yield source.count('\n', 0, at) + 1, f'"{found}": {advice}'
    if path.suffix != '.md':
        return
    for number, line in enumerate(without_code(source).splitlines(), 1):
        if line.startswith('|'):
            if len(line) > ROW_COLUMNS:
                yield number, f'a row of {len(line)} columns, over {ROW_COLUMNS}: use a list or paragraphs'
        elif len(line) > COLUMNS and ' ' in line.strip():
            yield number, f'{len(line)} columns: wrap it at {COLUMNS}'


def subject_complaints(message):
    subject = message.lstrip('\n').split('\n', 1)[0]
    if re.match(r'(?:Merge|Revert|fixup!|squash!) ', subject):
        return
    if len(subject) > SUBJECT_COLUMNS:
        yield f'{len(subject)} columns: at most {SUBJECT_COLUMNS}'
    form = re.fullmatch(r'[a-z][\w/.,+ -]*: (\S.*[^.\s])', subject)
    if not form:
        yield 'write "part: what is done", without a full stop'
        return
    for pattern, advice in PHRASES:
        for m in re.finditer(pattern, form.group(1)):
            yield f'"{m.group(0).strip()}": {advice}'


def is_script(path):
    with (ROOT / path).open('rb') as f:
        return not path.suffix and f.read(2) == b'#!'


def listed():
    files = subprocess.run(['git', 'ls-files', *PASSED], cwd=ROOT, capture_output=True, check=True, text=True)
    for name in files.stdout.split():
        path = Path(name)
        if path.suffix in ('.c', '.h', '.md', '.py', '.sh') or path.name == 'meson.build' or is_script(path):
            yield path


def check_subject(path):
    complaints_of_subject = list(subject_complaints(Path(path).read_text()))
    for complaint in complaints_of_subject:
        print(f'words: subject of the commit: {complaint}', file=sys.stderr)
    return bool(complaints_of_subject)


def main():
    if sys.argv[1:2] == ['--subject']:
        return check_subject(sys.argv[2])
    bad = 0
    for path in [Path(a) for a in sys.argv[1:]] or listed():
        for line, complaint in sorted(complaints(path, (ROOT / path).read_text())):
            print(f'words: {path}:{line}: {complaint}', file=sys.stderr)
            bad += 1
    print(f'words: {bad} complaints')
    return bad > 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What words.py finds in each language, and what it leaves alone."""
import unittest
from pathlib import Path

from words import complaints, subject_complaints

BAD = (
    'Who reads this waits.',
    'It is done. What is left waits.',
    'A file wants a name.',
    'The payload lies behind it.',
    'There is one ring a worker.',
    'It writes 40 bytes a packet.',
    'It is tried twice a second.',
    'The owner is told.',
    'The QP goes on.',
    'A place for who comes late.',
    'The way is as of a datagram.',
)
GOOD = (
    'What is a QP? A pair of queues.',
    'It says what is left, and who reads it.',
    'Others stay behind.',
    'One of a session is enough, and one in a frame is forged.',
    'It goes on the list of a worker.',
    'There is one ring per worker, a worker reads 40 bytes per packet.',
)


def found(name, source):
    return [line for line, _ in complaints(Path(name), source)]


class Words(unittest.TestCase):
    def test_bad(self):
        for sentence in BAD:
            self.assertEqual(found('a.c', f'\n/* {sentence} */\n'), [2], sentence)
            self.assertEqual(found('a.c', f'int a;\n/**\n * {sentence}\n */\n'), [3], sentence)
            self.assertEqual(found('a.c', f'\nf("{sentence}");\n'), [2], sentence)
            self.assertEqual(found('a.py', f'\n# {sentence}\n'), [2], sentence)
            self.assertEqual(found('a.md', f'# Title\n\n{sentence}\n'), [3], sentence)
            self.assertEqual(found('a.md', f'- one\n- {sentence}\n'), [2], sentence)

    def test_good(self):
        for sentence in GOOD:
            for name, source in (('a.c', f'/* {sentence} */'), ('a.py', f'# {sentence}'), ('a.md', sentence)):
                self.assertEqual(found(name, source), [], sentence)

    def test_across_lines(self):
        self.assertEqual(found('a.c', '/* It ends. What is left\n * waits, and wants\n * a name. */\n'), [1, 2])
        self.assertEqual(found('a.md', 'It wants\na name.\n'), [1])

    def test_code_is_left_alone(self):
        self.assertEqual(found('a.c', 'int behind = wants(a);\n'), [])
        self.assertEqual(found('a.md', '```\nWho goes on behind?\n```\n\nThe option `behind`.\n'), [])

    def test_columns(self):
        self.assertEqual(found('a.md', 'a ' * 50 + '\n' + 'a ' * 51 + '\n'), [2])
        self.assertEqual(found('a.md', '| ' + 'a ' * 80 + '|\n' + 'h' * 120 + '\n'), [])
        self.assertEqual(found('a.md', '| ' + 'a ' * 124 + '\n| ' + 'a ' * 125 + '\n'), [2])
        self.assertEqual(found('a.md', 'a:\n\n    ' + '$ ' * 80 + '\n'), [])
        self.assertEqual(found('a.c', '/* ' + 'a ' * 80 + '*/\n'), [])

    def test_subjects(self):
        for subject in ('core: resend from the NAKed PSN', 'ctl/cm: ids count per user', "Merge branch 'a'",
                        'core: ' + 'a' * 66, 'test, doc: RNR delays\n\n' + 'body ' * 30):
            self.assertEqual(list(subject_complaints(subject)), [], subject)
        for subject in ('core: ' + 'a' * 67, 'Resend from the NAKed PSN', 'core: resend.', 'core: a QP wants a ring', ''):
            self.assertEqual(len(list(subject_complaints(subject))), 1, subject)


if __name__ == '__main__':
    unittest.main()

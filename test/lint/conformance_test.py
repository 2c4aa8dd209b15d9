#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a tag belongs to, in each language, and what conformance.py complains of."""
import re
import unittest
from collections import defaultdict

from types import SimpleNamespace

from conformance import LIST, Tags, complaints, joined
from tags import Source

C = '''/* SPDX */
/* RSP-01 is a remark about the file. */

/* proves RSP-12, RSP-13 (C9-88): no key
 * is needed. */
static void write__empty(void **state)
{
	row(); /* RSP-14: inside */
	/* "not a comment: */
}

static const struct row row[] = {
	{
		/* proves RSP-15 */
		.name = "send",
		.rules = "RSP-01",
	},
	{"other", 1}, /* RSP-16 */
	{
		.name = "/* RSP-17 */",
	},
};

/* RSP-18 */
struct qp {
	int a;
};

/* RSP-19 */
#define CHECK(x) \\
	do_it(x)

main(write__empty);
'''

PY = '''# RSP-01 of the file

# proves RSP-12,
# RSP-13
def case(self):
    x = 1   # RSP-14 inside
    rows = [
        # proves RSP-15
        ('row', 1),
        ('other', 2),   # RSP-16
    ]
'''


def places(path, text):
    s = Source(path, text)
    return {rule: s.place(first, last) for first, last, comment in s.comments
            for rule in re.findall(r'RSP-\d+', comment)}


class Quiet(Tags):
    """Without the tree."""

    def __init__(self):
        self.code, self.tests, self.wrong = defaultdict(list), defaultdict(list), []
        self.rules = {'RSP-12', 'RSP-13'}
        self.rule = re.compile(r'\bRSP-\d+\b')
        self.meson = type('Meson', (), {'test': lambda self, path: path.startswith('test/unit') and 'core/x'})()


class Test(unittest.TestCase):
    def test_c(self):
        self.assertEqual(places('a.c', C), {
            'RSP-01': '', 'RSP-12': 'write__empty', 'RSP-13': 'write__empty', 'RSP-14': 'write__empty',
            'RSP-15': 'send', 'RSP-16': 'other', 'RSP-18': 'qp', 'RSP-19': 'CHECK'})

    def test_python(self):
        self.assertEqual(places('a.py', PY), {
            'RSP-01': '', 'RSP-12': 'case', 'RSP-13': 'case', 'RSP-14': 'case', 'RSP-15': 'row',
            'RSP-16': 'other'})

    def test_proofs_and_code(self):
        t = Quiet()
        t.look(Source('test/unit/core/x_test.c', C))
        self.assertEqual(t.tests['RSP-13'], [('core/x', 'write__empty')])
        self.assertEqual(t.wrong[-1].split(': ')[1], 'there is no rule RSP-15')
        t.look(Source('lib/core/x.c', C.replace('RSP-14', 'RSP-13')))
        self.assertEqual(t.code['RSP-13'], [('lib/core/x.c', 'write__empty')])

    def test_complaints(self):
        t = Quiet()
        t.look(Source('test/unit/core/x_test.c', C.replace('main(write__empty);', '')))
        self.assertIn('belongs to no test function that is run', t.wrong[0])
        t = Quiet()
        t.look(Source('test/nowhere/x.c', C))
        self.assertIn('no test of a meson.build runs this file', t.wrong[0])

    def test_notes(self):
        """A group's line that no open rule needs, because those that are open have lines of their own, is stale."""
        rule = lambda name, done: SimpleNamespace(id=name, done=done, code='', lacks=lambda: 'code')
        rules = [rule('MC-01', True), rule('MC-09', False), rule('CM-01', False), rule('CM-02', True)]
        own, group = ('MC-09', 'open'), ('MC-*', 'open')
        comes = {('CM-*', 'open'): 'later'}
        self.assertEqual(list(complaints(rules, {**comes, own: 'later'})), [])
        self.assertEqual(list(complaints(rules, {**comes, group: 'later'})), [])
        wrong = list(complaints(rules, {**comes, own: 'later', group: 'not there yet'}))
        self.assertEqual([w.split()[1] for w in wrong], ['MC-*'])
        self.assertIn('MC-09 lacks code', list(complaints(rules, comes))[0])
        self.assertIn('not open any more', list(complaints(rules, {**comes, own: '', ('CM-02', 'open'): ''}))[0])

    def test_lists(self):
        self.assertEqual(re.findall(rf'proves ({LIST})', 'proves RSP-12, RSP-13 and IP4-01 (C9-88), RSP-14'),
                         ['RSP-12, RSP-13 and IP4-01'])
        self.assertEqual(joined([('b', 'x'), ('a', ''), ('b', 'y'), ('b', 'x')]), 'a; b: x, y')


if __name__ == '__main__':
    unittest.main()

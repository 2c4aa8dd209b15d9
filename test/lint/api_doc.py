#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""api_doc.py

Doxygen has nothing to complain of in roci.h, and all that roci.h declares is described: each function with its
parameters and what it returns, each structure with its members, each enumeration with its values. What libroci
exports is declared there, but for what it exports to lib/verbs alone.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def described(node):
    return any(''.join(d.itertext()).strip() for d in
               node.findall('briefdescription') + node.findall('detaileddescription'))


def function(node):
    wanted = {p.findtext('declname') for p in node.findall('param')} - {None}
    told = {n.text for n in node.iter('parametername')}
    for name in sorted(wanted - told):
        yield f'parameter {name} is not described'
    if ''.join(node.find('type').itertext()).strip() not in ('void', 'ROCI_API void'):
        if not any(s.get('kind') == 'return' for s in node.iter('simplesect')):
            yield 'what it returns is not described'


def file(path):
    """What is wrong in a file of doxygen's XML, and the functions that it declares."""
    wrong, functions = [], set()
    for compound in ET.parse(path).getroot().findall('compounddef'):
        owner = compound.findtext('compoundname')
        if compound.get('kind') in ('struct', 'union') and '@' not in owner and not described(compound):
            wrong.append(f'{owner} is not described')
        for m in compound.iter('memberdef'):
            name = m.findtext('name')
            if name.startswith('@'):
                continue
            if not described(m) and name not in ('ROCI_H', 'ROCI_FAULT_H'):
                wrong.append(f'{owner} {name} is not described')
            if m.get('kind') == 'function':
                functions.add(name)
                wrong += [f'{name}(): {w}' for w in function(m)]
            wrong += [f'{name}: {v.findtext("name")} is not described' for v in m.findall('enumvalue')
                      if not described(v)]
    return wrong, functions


def main():
    with tempfile.TemporaryDirectory() as out:
        r = subprocess.run(['doxygen', 'doc/Doxyfile'], cwd=ROOT, env={**os.environ, 'OUT': out},
                           capture_output=True, text=True)
        wrong = r.stderr.splitlines()
        functions = set()
        for path in Path(out, 'xml').glob('*.xml'):
            if path.name != 'index.xml':
                w, f = file(path)
                wrong += w
                functions |= f
    public = (ROOT / 'lib/client/libroci.map').read_text().partition('ROCI_PRIVATE_1')[0]
    exported = set(re.findall(r'\b(roci_\w+);', public))
    wrong += [f'libroci.map has {n}, roci.h has not' for n in sorted(exported - functions)]
    wrong += ['doxygen found no functions'] if not functions else []
    for w in wrong:
        print(f'api_doc: {w}', file=sys.stderr)
    print(f'api_doc: {len(functions)} functions, {len(wrong)} complaints')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

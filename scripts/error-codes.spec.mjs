import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { inRoot } from './shell/paths.mjs';

/** The folders of code that puts errors on `$errors`, and how it names their codes. */
const SOURCES = [
  { folder: 'apps/runtime/src/sandbox/guest', code: /(?:\bcode: |\breadonly code = |\bwithCode\()'(\w+)'/g },
  { folder: 'apps/runtime/src/sandbox/processes', code: /\bcode: '(\w+)'/g },
  { folder: 'apps/runtime/src/sandbox/sandbox.ts', code: /\bCLOSED = '(\w+)'/g },
  { folder: 'apps/runtime/src/source-state', code: /\brefuse\(emit, '(\w+)'/g },
  { folder: 'apps/runtime/src/run-events', code: /\bplainError\('(\w+)'/g },
  { folder: 'apps/runtime/src/runs', code: /\bplainError\('(\w+)'/g },
  { folder: 'apps/routing/src', code: /\b(?:CODE|WEBHOOK_DISABLED) = '(\w+)'/g },
  { folder: 'apps/event-store/src', code: /\bCODE = '(\w+)'/g },
];

/** Why processes end that have no runs, or whose runs are repeated. */
const NOT_OF_RUNS = ['START', 'RETIRED', 'ABANDONED'];

/** @param {string} path of a file or folder @returns {string[]} */
const textsOf = (path) =>
  path.endsWith('.ts')
    ? [readFileSync(inRoot(path), 'utf8')]
    : readdirSync(inRoot(path), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts') && !/spec\.ts$|-for-tests\.ts$/.test(name))
        .map((name) => readFileSync(inRoot(path, name), 'utf8'));

it('docs/how-to/find-errors.md lists every code of errors on $errors, and no other', () => {
  const found = SOURCES.flatMap(({ folder, code }) => {
    const codes = textsOf(folder).flatMap((text) => [...text.matchAll(code)].map(([, name = '']) => name));
    // the pattern has to follow the code
    expect({ folder, codes: codes.length }).not.toEqual({ folder, codes: 0 });
    return codes;
  });
  const page = readFileSync(inRoot('docs', 'how-to', 'find-errors.md'), 'utf8');
  const [, table = ''] = /^\| Code .*\n(?<rows>(?:\|.*\n)+)/m.exec(page) ?? [];
  const listed = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
  expect(listed.sort()).toEqual([...new Set(found)].filter((name) => !NOT_OF_RUNS.includes(name)).sort());
});

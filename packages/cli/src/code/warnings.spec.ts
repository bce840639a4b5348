import { expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { placesIn } from './component-file.js';
import { showWarnings } from './warnings.js';

it('shows each warning of a component with the file, line and column', async () => {
  const warned: string[] = [];
  const warnings = [
    { message: '`hooks.other` is never called', line: 3, column: 12 },
    { message: 'axios is the version of Sluice', line: null, column: null },
  ];
  const session = (data: object) =>
    ({ warn: (text: string) => warned.push(text), sluice: { getComponent: async () => ({ data }) } }) as unknown as Session;
  await showWarnings(session({ warnings }), 'sc_1', placesIn('a.mjs'));
  await showWarnings(session({}), 'sc_1', placesIn('a.mjs'));
  expect(warned).toEqual(['a.mjs:3:12: warning: `hooks.other` is never called', 'a.mjs: warning: axios is the version of Sluice']);
});

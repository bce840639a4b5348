import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { deadLetters, doctor } from './doctor.js';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-doctor-'))));
afterAll(() => rmSync(folder, { recursive: true }));

/** The report of doctor about dead letters and profiles. @param code of a launcher @param file of the profiles */
async function reportOf(code: string, { url = 'http://127.0.0.1:3000', file = 'none' } = {}) {
  const launcher = join(folder, 'launcher.mjs');
  writeFileSync(launcher, code);
  const lines: string[] = [];
  const session = {
    ...{ format: 'table', access: { url, key: 'slk_1', from: 'a test' }, profiles: { path: join(folder, file) } },
    env: { SLUICE_LOCAL_URL: 'http://localhost:3000', SLUICE_LOCAL_LAUNCHER: launcher },
    printStyled: (text: string) => lines.push(text),
    note: (text: string) => lines.push(text),
    request: async () => new Response('{"info":{"title":"Sluice","version":"v1"}}', { headers: { date: new Date().toUTCString() } }),
    sluice: {
      getCurrentUser: async () => ({ data: { email: 'me@example.com' } }),
      each: async function* () {},
    },
  };
  const failed = await doctor(session as unknown as Session).then(
    () => false,
    () => true,
  );
  return { failed, text: lines.find((line) => line.includes(file === 'none' ? 'dead' : 'profiles')) };
}

it('reports profiles that cannot be read without a stack', async () => {
  const { failed, text } = await reportOf('console.log("[]")', { file: 'x'.repeat(300) });
  expect(failed).toBe(true);
  expect(text).toMatch(/^failed {2}profiles: .* cannot be read: ENAMETOOLONG[^\n]*\n$/);
});

it.each([
  ['console.log("[]")', 'ok      dead letters: none in the last 24 h\n'],
  [
    `console.log(JSON.stringify([
      { service: 'routing', topic: 'events', reason: 'no key', count: 3 },
      { service: 'routing', topic: 'events', reason: 'no JSON', count: 1 },
      { service: 'catalog', topic: 'workflows', reason: 'no JSON', count: 2 }]))`,
    'look    dead letters: in the last 24 h 4 of events in routing, 2 of workflows in catalog; sluice dead-letters lists them with their reasons\n',
  ],
])('counts dead letters by service and topic, and succeeds: %s', async (code, text) => {
  expect(await reportOf(code)).toEqual({ failed: false, text });
});

it('the check of dead letters fails if they cannot be counted', async () => {
  expect(await reportOf('console.error("no broker"); process.exitCode = 1')).toEqual({
    failed: true,
    text: 'failed  dead letters: they cannot be counted: no broker\n',
  });
});

it('the check of dead letters fails if counting takes too long', async () => {
  const launcher = join(folder, 'launcher.mjs');
  writeFileSync(launcher, 'setInterval(() => {}, 1000)');
  await expect(deadLetters(launcher, 500)).rejects.toThrow('they cannot be counted within 0.5 s: Kafka may not respond');
});

it('says how to count those of another instance, and does not count those of this clone', async () => {
  expect(await reportOf('console.log("[]")', { url: 'https://sluice.example.com' })).toEqual({
    failed: false,
    text: 'sluice dead-letters, where Sluice is installed, counts the records that could not be handled',
  });
});

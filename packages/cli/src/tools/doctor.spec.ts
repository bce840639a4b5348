import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CliError } from '../session/errors.js';
import type { Session } from '../session/session.js';
import { deadLetters, doctor } from './doctor.js';

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'sluice-doctor-'))));
afterAll(() => rmSync(folder, { recursive: true }));

/** A terminal of which doctor needs this, with the lines that it prints. */
function terminal(given: object) {
  const lines: string[] = [];
  const print = (text: string): unknown => lines.push(text);
  const session = { format: 'table', printStyled: print, note: print, limited: (): unknown => session, ...given };
  return { session: session as unknown as Session, lines };
}

/** The report of doctor about dead letters and profiles. @param code of a launcher @param file of the profiles */
async function reportOf(code: string, { url = 'http://127.0.0.1:3000', file = 'none' } = {}) {
  const launcher = join(folder, 'launcher.mjs');
  writeFileSync(launcher, code);
  const { session, lines } = terminal({
    ...{ access: { url, key: 'slk_1', from: 'a test' }, profiles: { path: join(folder, file) } },
    env: { SLUICE_LOCAL_URL: 'http://localhost:3000', SLUICE_LOCAL_LAUNCHER: launcher },
    request: async () => new Response('{"info":{"title":"Sluice","version":"v1"}}', { headers: { date: new Date().toUTCString() } }),
    sluice: {
      getCurrentUser: async () => ({ data: { email: 'me@example.com' } }),
      each: async function* () {},
    },
  });
  const failed = await doctor(session).then(
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

describe('while a server does not respond', () => {
  const given = { access: { url: 'http://here' }, profiles: { path: '/none' }, env: {} };

  it('doctor shows the checks that are done already', async () => {
    const response = Promise.withResolvers<never>();
    const { session, lines } = terminal({ ...given, request: () => response.promise });
    const done = doctor(session);
    const shown = () => lines.map((line) => line.replace(/:.*/s, ''));
    await setImmediate();
    expect(shown()).toEqual(['ok      Node', 'ok      profiles', 'ok      API key']);
    response.reject(new CliError('no response', 5));
    await expect(done).rejects.toMatchObject({ code: 5 });
    expect(shown().slice(3, 4)).toEqual(['failed  server']);
  });

  it('waits for ten seconds and does not try again', async () => {
    const limits: unknown[] = [];
    const request = () => Promise.reject(new CliError('no response', 5));
    const { session } = terminal({ ...given, request });
    const limited = (retrying: unknown): Session => (limits.push(retrying), session);
    await expect(doctor({ limited } as unknown as Session)).rejects.toMatchObject({ code: 5 });
    expect(limits).toEqual([{ retries: 0, timeoutMs: 10_000 }]);
  });
});

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Session } from '../session/session.js';
import { init } from './init.js';

let folder: string;
const fetch = globalThis.fetch;
/** As in a run. */
Object.assign(globalThis, { defineSource: (source: object) => source });
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-init-'));
});
afterEach(() => {
  globalThis.fetch = fetch;
  rmSync(folder, { recursive: true });
});

/** The ids that a run of the timer template emits when its URL returns this body. */
async function idsFor(body: unknown): Promise<string[]> {
  globalThis.fetch = async () => Response.json(body);
  const { default: component } = await import(join(folder, 'watch.mjs'));
  const ids: string[] = [];
  await component.run.call({ url: 'https://example.com', $emit: (_: unknown, { id }: { id: string }) => ids.push(id) });
  return ids;
}

it('makes the folder of the file, and quotes the next command for a shell', () => {
  const notes: string[] = [];
  const file = join(folder, 'sub', "it's");
  init({ note: (text: string) => notes.push(text) } as unknown as Session, file, {});
  expect(existsSync(`${file}.mjs`)).toBe(true);
  expect(notes).toEqual([`wrote ${file}.mjs; next: sluice dev '${join(folder, 'sub')}/it'\\''s.mjs' -p url=https://…`]);
});

it.each(['.', '..', 'sub/'])('refuses %s, which is a folder', (file) => {
  expect(() => init({} as Session, file, {})).toThrow(`${file} is a folder: add the name of the file`);
});

describe('the template of a timer', () => {
  it('emits a body of any size with a short id, which is the same for the same body', async () => {
    init({ note: () => {} } as unknown as Session, join(folder, 'watch'), {});
    const [long] = await idsFor({ text: 'x'.repeat(10_000) });
    expect(long).toMatch(/^[0-9a-f]{64}$/);
    expect(await idsFor({ text: 'x'.repeat(10_000) })).toEqual([long]);
    expect(await idsFor({ text: 'y' })).not.toEqual([long]);
  });
});

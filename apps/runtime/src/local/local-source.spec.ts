import { expect, it } from '@jest/globals';
import { componentOf } from '../sandbox/sandbox-for-tests.js';
import type { ComponentDescription, RunJob, RunOutcome, Sandbox } from '../sandbox/sandbox.js';
import { LocalSource, type LocalState } from './local-source.js';

it('keeps the values of all keys between runs, also of __proto__, until they are deleted', async () => {
  const given: RunJob['db'][] = [];
  const changes = ['{"k":"1","__proto__":"2"}', '{"k":null}', '{}'].map((text) => JSON.parse(text) as RunOutcome['db']);
  const outcome = { status: 'ok', error: null, wallMs: 1, cpuMs: 1, mainMs: 1, responded: false } as const;
  const sandbox = {
    run: async ({ db }: RunJob): Promise<RunOutcome> => ({ ...outcome, emits: [], logs: [], db: changes[given.push(db) - 1]! }),
  } as unknown as Sandbox;
  const state: LocalState = { db: {}, dedupe: {} };
  const description = { dedupe: null } as ComponentDescription;
  const source = new LocalSource(sandbox, { component: componentOf(''), description, props: {}, endpoint: 'http://x', state });
  for (const _ of changes) await source.run('run');
  expect(given.map((db) => JSON.stringify(db))).toEqual(['{}', '{"k":"1","__proto__":"2"}', '{"__proto__":"2"}']);
  expect(JSON.stringify(state.db)).toBe('{"__proto__":2}');
});

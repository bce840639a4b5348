import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type SourceId, switchOffSource, Unavailable, type UserId } from '#contracts';
import type { Messages } from '#messaging';
import { createLog } from '#observability';
import { FakeMessages, freshDatabase, type FreshDatabase } from '#testing';
import { schema } from '../database/schema.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { deployedState, DeploymentsRepository } from '../deployments/deployments.repository.js';
import type { RunStatus } from '../sandbox/sandbox.js';
import type { DueRun } from '../run-events/run-events.js';
import { RunResults } from './run-results.js';
import type { RunSource } from './run-sources.js';

const SOURCE = 'dc_1' as SourceId;
const OWNER = 'u_1' as UserId;

let db: FreshDatabase;
let deployments: DeploymentsRepository;
beforeAll(async () => {
  db = await freshDatabase(schema);
  deployments = new DeploymentsRepository(db.database);
});
afterAll(() => db.drop());

const deploy = (version: number) =>
  db.database.transaction((transaction) =>
    deployments.put(transaction, [
      {
        ...{ source_id: SOURCE, owner_id: OWNER, active: true, version, code_hash: 'h', configured_props: {}, credentials: null },
        ...{ schedules: {}, endpoint_key: null, name_slug: 's' },
      },
    ]),
  );
const reports = async (): Promise<string[]> =>
  (await db.database.query<{ value: Buffer }>('SELECT value FROM outbox ORDER BY id')).rows.map(
    ({ value }) => JSON.parse(value.toString()).error.code,
  );

const none = undefined as never;
const RUN = { run_id: 'r', source_id: SOURCE, owner_id: OWNER, trigger: 'manual', due_at_ms: 1, event: '1' } as DueRun;
const resultsWith = (messages: FakeMessages) =>
  new RunResults(none, none, none, deployments, messages as unknown as Messages, none, none, createLog('test', 'silent'));
const found = async () => (await deployments.find(SOURCE))!;
const sourceOf = (row: DeploymentRow, concurrency = 1) =>
  ({ state: deployedState(row), killsInRow: row.kills_in_row, description: { concurrency, dedupe: null } }) as RunSource;

describe('a source whose runs may overlap', () => {
  let version = 100;
  const results = () => resultsWith(new FakeMessages());
  const end = async (row: DeploymentRow, status: RunStatus, run: Partial<DueRun> = {}) =>
    results().countKill({ ...RUN, ...run }, sourceOf(row, 3), status);
  beforeEach(async () => {
    await deploy(version++);
    await db.database.query('TRUNCATE outbox');
  });

  it('is not switched off because of three runs that end their process at the same time', async () => {
    const row = await found();
    for (let n = 0; n < 3; n++) await end(row, 'timeout');
    expect((await found()).kills_in_row).toBe(1);
    expect(await reports()).toEqual([]);
  });

  it('begins to count again after a run that succeeds, although that began before those that were counted', async () => {
    const row = await found();
    await end(row, 'memory');
    const [second, third] = [await found(), await found()];
    await end(second, 'memory');
    await end(row, 'ok');
    expect((await found()).kills_in_row).toBe(0);
    await end(third, 'memory');
    expect((await found()).kills_in_row).toBe(1);
  });

  it('has its hooks counted in any case', async () => {
    await end(await found(), 'memory');
    await end({ ...(await found()), kills_in_row: 0 }, 'timeout', { hook: {} as never });
    expect((await found()).kills_in_row).toBe(2);
    await end({ ...(await found()), kills_in_row: 0 }, 'ok', { hook: {} as never });
    expect((await found()).kills_in_row).toBe(2);
  });
});

it('a source whose runs keep ending their processes is reported once per version, whether or not the catalog replies', async () => {
  const messages = new FakeMessages().replyTo(switchOffSource, () => {
    throw new Unavailable('away');
  });
  const results = resultsWith(messages);
  const end = async (status: RunStatus, row?: DeploymentRow) => {
    await results
      .countKill(RUN, sourceOf(row ?? (await found())), status)
      .catch((error: unknown) => expect(error).toMatchObject({ code: 'unavailable' }));
  };
  await deploy(1);
  for (const status of ['memory', 'killed', 'ok', 'memory', 'memory'] as const) await end(status);
  expect([await reports(), messages.requests]).toEqual([[], []]);
  await end('timeout');
  expect(await reports()).toEqual(['SourceSwitchedOff']);
  const request = { payload: { owner_id: OWNER, id: SOURCE, version: 1 } };
  expect(messages.requests).toMatchObject([request]);
  // another run of it was in progress
  await end('ok');
  const before = (await deployments.find(SOURCE))!;
  expect(before.kills_in_row).toBe(3);
  await end('memory');
  expect(await reports()).toEqual(['SourceSwitchedOff']);
  expect(messages.requests).toMatchObject([request, request]);
  await deploy(2);
  // runs of the earlier version that end now do not count
  for (let n = 0; n < 3; n++) await end('memory', before);
  expect((await deployments.find(SOURCE))?.kills_in_row).toBe(0);
  for (let n = 0; n < 3; n++) await end('memory');
  expect(await reports()).toEqual(['SourceSwitchedOff', 'SourceSwitchedOff']);
});

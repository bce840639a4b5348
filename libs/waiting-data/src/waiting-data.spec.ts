import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type FullAccount, listFullInRouting, listFullInRuntime, TooManyRequests, type UserId } from '#contracts';
import { type Messages, withLateReplies } from '#messaging';
import { type Log, metrics } from '#observability';
import { FakeMessages } from '#testing';
import { FullAccounts } from './full-accounts.js';
import { fullAccounts, sizeText, WaitingData } from './waiting-data.js';
import { WaitingDataConfig } from './waiting-data.config.js';
import type { WaitingCount, WaitingEntriesRepository } from './waiting-entries.js';

const [ALICE, BOB] = ['u_00000000000000alice', 'u_0000000000000000bob'] as UserId[] as [UserId, UserId];

describe('an account', () => {
  it.each<[string, { was: boolean; bytes: number; limit?: number }, boolean]>([
    ['without waiting data is not full', { was: false, bytes: 0 }, false],
    ['below the limit is not full', { was: false, bytes: 999 }, false],
    ['at the limit is full', { was: false, bytes: 1000 }, true],
    ['stays full just below the limit', { was: true, bytes: 999 }, true],
    ['stays full at nine tenths of the limit', { was: true, bytes: 900 }, true],
    ['below that is no longer full', { was: true, bytes: 899 }, false],
    ['that has nothing left is no longer full', { was: true, bytes: 0 }, false],
    ['is never full without a limit', { was: false, bytes: 2 ** 50, limit: Infinity }, false],
  ])('%s', (_, { was, bytes, limit = 1000 }, isFull) => {
    expect(fullAccounts(new Set(was ? [ALICE] : []), new Map([[ALICE, bytes]]), limit).has(ALICE)).toBe(isFull);
  });

  it('is not full because of another one, or if it has left the table', () => {
    expect([...fullAccounts(new Set([ALICE]), new Map([[BOB, 1000]]), 1000)]).toEqual([BOB]);
  });
});

it.each([
  [0, '0 bytes'],
  [1023, '1023 bytes'],
  [1024, '1 KiB'],
  [1.5 * 1024 ** 2, '1.5 MiB'],
  [1024 ** 3, '1 GiB'],
  [2 ** 60, '1048576 TiB'],
])('%d is shown as %s', (bytes, text) => expect(sizeText(bytes)).toBe(text));

describe('the waiting data of a service', () => {
  let counts: WaitingCount[];
  let lines: [string, unknown][];
  let waiting: WaitingData;
  const log = {
    warn: (fields: object, name: string) => lines.push([name, fields]),
    info: (fields: object, name: string) => lines.push([name, fields]),
  } as unknown as Log;
  const valuesOf = async (name: string) =>
    (await metrics.getSingleMetric(name)!.get()).values.map(({ labels, value }) => [labels.table, value]);

  beforeEach(() => {
    [counts, lines] = [[], []];
    const entries = { counts: async () => counts } as unknown as WaitingEntriesRepository;
    const options = { tables: ['letter', 'parcel'], what: 'parcels', remedy: 'fetch them' };
    waiting = new WaitingData(entries, WaitingDataConfig.read({ SLUICE_MAX_WAITING_BYTES: '1000' }), options, log);
  });

  it('makes an account full by what all tables have together, and the log names it when that changes', async () => {
    counts = [
      { table: 'letter', account: ALICE, rows: 1, bytes: 600 },
      { table: 'parcel', account: ALICE, rows: 2, bytes: 1448 },
      { table: 'parcel', account: BOB, rows: 1, bytes: 999 },
    ];
    await waiting.look();
    await waiting.look();
    expect(waiting.list()).toEqual([{ owner_id: ALICE, reason: '2 KiB of parcels wait, and the limit is 1000 bytes; fetch them' }]);
    expect([waiting.isFull(ALICE), waiting.isFull(BOB)]).toEqual([true, false]);
    expect(waiting.isFullOf('parcel', ALICE)).toBe(true);
    expect(waiting.isFullOf('letter', ALICE)).toBe(false);
    expect(waiting.isFullOf('parcel', BOB)).toBe(false);
    counts = [];
    await waiting.look();
    expect(waiting.list()).toEqual([]);
    expect(lines).toEqual([
      ['account.full', { account_id: ALICE, bytes: 2048, limit: 1000 }],
      ['account.no-longer-full', { account_id: ALICE, bytes: 0, limit: 1000 }],
    ]);
  });

  it('is in the metrics, of all accounts together and without their ids', async () => {
    counts = [
      { table: 'parcel', account: ALICE, rows: 2, bytes: 1448 },
      { table: 'parcel', account: BOB, rows: 1, bytes: 999 },
    ];
    await waiting.look();
    expect(await valuesOf('sluice_waiting_bytes')).toEqual([
      ['letter', 0],
      ['parcel', 2447],
    ]);
    expect(await valuesOf('sluice_waiting_rows')).toEqual([
      ['letter', 0],
      ['parcel', 3],
    ]);
    expect(await valuesOf('sluice_accounts_full')).toEqual([[undefined, 1]]);
  });
});

describe('the full accounts of all services', () => {
  const lists = [listFullInRouting, listFullInRuntime];
  const replies = (routing: FullAccount[], runtime: FullAccount[]) =>
    new FakeMessages().replyTo(listFullInRouting, () => routing).replyTo(listFullInRuntime, () => runtime);
  const open = (messages: FakeMessages, own?: Partial<WaitingData>) =>
    new FullAccounts(messages as unknown as Messages, lists, own as WaitingData | undefined);

  it('are those of each of them', async () => {
    const full = open(replies([{ owner_id: ALICE, reason: 'deliveries' }], [{ owner_id: BOB, reason: 'runs' }]));
    expect(await full.isFull(ALICE)).toBe(false);
    for (const list of lists) await full.ask(list);
    expect([await full.isFull(ALICE), await full.isFull(BOB), await full.isFull('u_carol')]).toEqual([true, true, false]);
    expect([full.isFullIn(listFullInRouting, ALICE), full.isFullIn(listFullInRuntime, ALICE)]).toEqual([true, false]);
    await expect(full.refuseFull(ALICE)).rejects.toThrow(new TooManyRequests('deliveries'));
    await expect(full.refuseFull(BOB)).rejects.toThrow(new TooManyRequests('runs'));
    await full.refuseFull('u_carol');
  });

  it('are those of this service, too', async () => {
    const full = open(new FakeMessages(), { isFull: (id) => id === ALICE, reasonFor: () => 'mine' });
    await expect(full.refuseFull(ALICE)).rejects.toThrow(new TooManyRequests('mine'));
    expect(await full.isFull(BOB)).toBe(false);
  });

  it('stay as they were while a service does not respond, and change with its next reply', async () => {
    const messages = replies([{ owner_id: ALICE, reason: 'deliveries' }], []);
    const full = open(messages);
    await full.ask(listFullInRouting);
    messages.replyTo(listFullInRouting, () => {
      throw new Error('away');
    });
    await expect(full.ask(listFullInRouting)).rejects.toThrow('away');
    expect(await full.isFull(ALICE)).toBe(true);
    messages.replyTo(listFullInRouting, () => []);
    await full.ask(listFullInRouting);
    expect(await full.isFull(ALICE)).toBe(false);
  });

  it('are not waited for by a request that accepts late replies', async () => {
    const full = open(new FakeMessages().replyLate(listFullInRouting, async () => []));
    const onLate = jest.fn();
    await withLateReplies(onLate, () => full.ask(listFullInRouting));
    expect(onLate).not.toHaveBeenCalled();
  });

  describe('some time after the last replies', () => {
    const MINUTE_MS = 60_000;
    let now: number;
    beforeEach(() => {
      now = 1000;
      jest.spyOn(performance, 'now').mockImplementation(() => now);
    });
    afterEach(() => void jest.restoreAllMocks());

    it.each([
      ['are queried again before a request is refused', MINUTE_MS, [false, false], 4],
      ['are those of the replies while these are less than a minute old', MINUTE_MS - 1, [true, true], 4],
      ['are not queried again within five seconds', 4999, [true, true], 2],
    ])('%s', async (_, ms, expected, requests) => {
      const messages = replies([{ owner_id: ALICE, reason: 'deliveries' }], []);
      const full = open(messages);
      full.onApplicationBootstrap();
      await new Promise((resolve) => setImmediate(resolve));
      await expect(full.refuseFull(ALICE)).rejects.toThrow(new TooManyRequests('deliveries'));
      messages.replyTo(listFullInRouting, () => []);
      now += ms;
      expect(await Promise.all([full.isFull(ALICE), full.isFull(ALICE)])).toEqual(expected);
      expect(messages.requests).toHaveLength(requests);
    });
  });
});

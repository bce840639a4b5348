import { expect, it, jest } from '@jest/globals';
import type { EmitterId, WebhookId } from '#contracts';
import type { Database } from '#database';
import { seededRandom } from '#testing';
import type { WebhooksRepository } from '../../webhooks/webhooks.repository.js';
import { createLog } from '#observability';
import { COUNTED, type DeliveredEntry, DeliveredRepository, KEPT } from './delivered.repository.js';
import { DeliveredLog, MOST_GATHERED } from './delivered-log.js';

it('deletes surplus deliveries also of more webhooks than it counts', async () => {
  let trimmed = 0;
  const database = { query: async (sql: string, [ids]: [WebhookId[]]) => void (sql.startsWith('DELETE') && (trimmed += ids.length)) };
  const webhooks = { markResponding: async () => {} } as unknown as WebhooksRepository;
  const repository = new DeliveredRepository(database as unknown as Database, webhooks, seededRandom(1));
  const count = 2 * COUNTED;
  const entry = { ms: 1, seq: 1, emitter_id: 'dc_1' as const, attempts: [] };
  const entries = new Map(Array.from({ length: count }, (_, n) => [`wh_${n}` as const, [entry]]));
  for (let flush = 0; flush < 5; flush++) await repository.add(entries, KEPT);
  expect(trimmed / (5 * count)).toBeCloseTo(1 / 20, 2);
});

it.each([
  ['writes entries again after an outage', 'ECONNRESET', [[1, 2]]],
  ['does not write entries again that the database refuses', '22P02', [[2]]],
])('%s', async (_, code, expected) => {
  const added: number[][] = [];
  let error: Error | undefined = Object.assign(new Error('failed'), { code });
  const add = async (entries: Map<WebhookId, DeliveredEntry[]>) => {
    if (error) throw error;
    added.push(entries.get('wh_1')!.map(({ seq }) => seq));
  };
  const log = new DeliveredLog({ add } as unknown as DeliveredRepository, createLog('test', 'silent'));
  const deliver = (seq: number) =>
    log.add({ webhookId: 'wh_1', place: { ms: 1, seq }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') }, []);
  deliver(1);
  await log.flush();
  error = undefined;
  deliver(2);
  await log.flush();
  expect(added).toEqual(expected);
});

it.each<['webhook' | 'emitter', WebhookId | EmitterId, WebhookId[][]]>([
  ['webhook', 'wh_2', [['wh_2'], ['wh_1', 'wh_3']]],
  ['emitter', 'dc_2', [['wh_1', 'wh_3'], ['wh_2']]],
])('writes the entries of one %s without those of others', async (_, only, expected) => {
  const added: WebhookId[][] = [];
  const add = async (entries: Map<WebhookId, DeliveredEntry[]>) => void added.push([...entries.keys()]);
  const log = new DeliveredLog({ add } as unknown as DeliveredRepository, createLog('test', 'silent'));
  const deliver = (webhookId: WebhookId, emitterId: EmitterId) =>
    log.add({ webhookId, place: { ms: 1, seq: 1 }, emitterId, stream: '', emitId: 'e', json: Buffer.from('1') }, []);
  deliver('wh_1', 'dc_1');
  deliver('wh_1', 'dc_2');
  deliver('wh_2', 'dc_1');
  deliver('wh_3', 'dc_2');
  await log.flush(only);
  await log.flush(only);
  await log.flush();
  expect(added).toEqual(expected);
});

it('keeps a limited number of entries of all webhooks in memory while the database does not respond, or fails', async () => {
  const added: Map<WebhookId, DeliveredEntry[]>[] = [];
  let response = Promise.withResolvers<void>();
  const add = async (entries: Map<WebhookId, DeliveredEntry[]>) => {
    added.push(entries);
    await response.promise;
  };
  const log = new DeliveredLog({ add } as unknown as DeliveredRepository, createLog('test', 'silent'));
  const count = () => [...added.pop()!.values()].reduce((sum, entries) => sum + entries.length, 0);
  const deliverAll = () => {
    for (let seq = 0; seq < 2.5 * KEPT; seq++)
      for (let n = 0; n < 300; n++)
        log.add({ webhookId: `wh_${n}`, place: { ms: 1, seq }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') }, []);
  };
  deliverAll();
  const flushed = log.flush();
  await new Promise(setImmediate);
  expect(count()).toBeGreaterThan(MOST_GATHERED / 2);
  deliverAll();
  response.reject(Object.assign(new Error('failed'), { code: 'ECONNRESET' }));
  await flushed;
  response = Promise.withResolvers();
  response.resolve();
  deliverAll();
  await log.flush();
  expect(count()).toBeLessThanOrEqual(MOST_GATHERED);
  log.add({ webhookId: 'wh_1', place: { ms: 1, seq: 1 }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') }, []);
  await log.flush();
  expect(count()).toBe(1);
});

it('writes the first delivery after a pause at once, which a crash would lose, and those after it together', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
  try {
    const added: number[][] = [];
    const add = async (entries: Map<WebhookId, DeliveredEntry[]>) => void added.push(entries.get('wh_1')!.map(({ seq }) => seq));
    const log = new DeliveredLog({ add } as unknown as DeliveredRepository, createLog('test', 'silent'));
    const deliver = (seq: number) =>
      log.add({ webhookId: 'wh_1', place: { ms: 1, seq }, emitterId: 'dc_1', stream: '', emitId: 'e', json: Buffer.from('1') }, []);
    log.onApplicationBootstrap();
    expect(jest.getTimerCount()).toBe(0);
    deliver(1);
    deliver(2);
    await jest.advanceTimersByTimeAsync(1);
    expect(added).toEqual([[1, 2]]);
    for (let seq = 3; seq < 7; seq++) {
      deliver(seq);
      await jest.advanceTimersByTimeAsync(600);
    }
    expect(added).toEqual([
      [1, 2],
      [3, 4, 5, 6],
    ]);
    expect(jest.getTimerCount()).toBe(0);
    await jest.advanceTimersByTimeAsync(5000);
    deliver(7);
    await jest.advanceTimersByTimeAsync(1);
    deliver(8);
    await log.onApplicationShutdown();
    expect(added.slice(2)).toEqual([[7], [8]]);
    expect(jest.getTimerCount()).toBe(0);
  } finally {
    jest.useRealTimers();
  }
});

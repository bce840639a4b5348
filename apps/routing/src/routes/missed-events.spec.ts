import { describe, expect, it } from '@jest/globals';
import { type EmitterEvents, EVENTS_TOPIC, findEmittersBetween, SluiceError, TimedOut, Unavailable } from '#contracts';
import type { EmitterDirectory } from '#emitters';
import type { Messages, OutgoingRecord, Publisher } from '#messaging';
import { createLog } from '#observability';
import { FakeMessages } from '#testing';
import { MissedEvents } from './missed-events.js';

const missed = { partition: 2, from: 10, to: 30, since: 1_763_715_600_000 };

function setUp(reply: () => EmitterEvents[], requests: number[] = []) {
  const sent: OutgoingRecord[] = [];
  const messages = new FakeMessages().replyTo(findEmittersBetween, reply);
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      requests.push(records.length);
      sent.push(...records);
    },
  } as unknown as Publisher;
  const emitters = { find: async () => new Map([['dc_1', { owner_id: 'u_1' }]]) } as unknown as EmitterDirectory;
  return { sent, messages, events: new MissedEvents(messages as unknown as Messages, publisher, emitters, createLog('test', 'silent')) };
}

describe('events that retention has deleted', () => {
  it('are reported once to each emitter of which the store has some, with the same emit id when the report is repeated', async () => {
    const { sent, messages, events } = setUp(() => [
      { emitter_id: 'dc_1', events: 3 },
      { emitter_id: 'p_2', events: 1 },
    ]);
    await events.task(missed).run(() => {});
    expect(messages.requests[0]?.payload).toEqual({ partition: 2, from_offset: 10, to_offset: 30, since_ms: missed.since });
    expect(sent.map(({ topic, key, headers }) => [topic, key, headers?.ce_type])).toEqual([
      [EVENTS_TOPIC, 'dc_1', '$errors'],
      [EVENTS_TOPIC, 'p_2', '$errors'],
    ]);
    expect(JSON.parse(String(sent[0]?.value)).error).toMatchObject({
      code: 'EventsNotDelivered',
      message: expect.stringContaining('3 events'),
    });
    expect(JSON.parse(String(sent[0]?.value)).original_context).toMatchObject({ source_id: 'dc_1', owner_id: 'u_1' });
    await events.task(missed).run(() => {});
    expect(sent[2]?.headers?.ce_id).toBe(sent[0]?.headers?.ce_id);
    expect(sent[3]?.headers?.ce_id).not.toBe(sent[0]?.headers?.ce_id);
  });

  it.each([
    ['takes too long', new TimedOut('too long')],
    ['fails', new SluiceError('unprocessable', 'too large')],
  ])('are not reported if the store %s several times', async (_, error) => {
    const { sent, messages, events } = setUp(() => {
      throw error;
    });
    const { run } = events.task(missed);
    await expect(run(() => {})).rejects.toThrow(error.message);
    await expect(run(() => {})).rejects.toThrow(error.message);
    await run(() => {});
    expect([messages.requests.length, sent.length]).toEqual([3, 0]);
  });

  it('events that retention has deleted are reported in batches of emitters', async () => {
    const requests: number[] = [];
    const { sent, events } = setUp(() => Array.from({ length: 2500 }, (_, n) => ({ emitter_id: `dc_${n}` as const, events: 1 })), requests);
    await events.task(missed).run(() => {});
    expect([sent.length, requests]).toEqual([2500, [1000, 1000, 500]]);
  });

  it('are reported by the next try of the task if the store is down', async () => {
    let tries = 0;
    const { sent, events } = setUp(() => {
      if (++tries < 6) throw new Unavailable('down');
      return [{ emitter_id: 'dc_1', events: 3 }];
    });
    const { run } = events.task(missed);
    for (let n = 0; n < 5; n++) await expect(run(() => {})).rejects.toThrow('down');
    await run(() => {});
    expect([tries, sent.length]).toEqual([6, 1]);
  });
});

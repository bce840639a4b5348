import { beforeEach, describe, expect, it } from '@jest/globals';
import type { EmitterId } from '#contracts';
import { deletionRecord, eventPlace, eventRecord } from '#events';
import { LogRecord } from '#messaging';
import type { LiveEvent } from './live-event.js';
import { isBelow, LiveHub, type LiveListener } from './live-hub.js';

const ONE: EmitterId = 'dc_000000000000000001';
const OTHER: EmitterId = 'dc_000000000000000002';

class Listener implements LiveListener {
  readonly taken: string[] = [];
  readonly deletions = new Set<LiveEvent['deletions']>();
  constructor(
    readonly emitterId: EmitterId,
    readonly stream = '' as LiveListener['stream'],
  ) {}
  begin(): void {}
  take(event: LiveEvent): void {
    this.taken.push(event.emitted.emitId);
    this.deletions.add(event.deletions);
  }
}

describe('the hub of live streams', () => {
  let hub: LiveHub;
  beforeEach(() => {
    hub = new LiveHub({ maxEventBytes: 100 });
  });

  const take = (offset: number, emitId: string, { emitterId = ONE, stream = '', json = '{}', partition = 0 } = {}) => {
    const { key, value, headers } = eventRecord({ emitterId, stream, emitId, json: Buffer.from(json) });
    const message = { key: Buffer.from(key), value, headers, offset: String(offset), timestamp: '1000', attributes: 0 };
    hub.take(new LogRecord('events', partition, message, 1000));
  };

  it('passes each subscriber the events of its emitter and stream, in the order of the log', () => {
    const [own, errors, other] = [new Listener(ONE), new Listener(ONE, '$errors'), new Listener(OTHER)];
    for (const listener of [own, errors, other]) hub.join(listener);
    take(0, 'a');
    take(1, 'b', { stream: '$errors' });
    take(2, 'c', { emitterId: OTHER });
    take(3, 'd');
    expect([own, errors, other].map(({ taken }) => taken)).toEqual([['a', 'd'], ['b'], ['c']]);
  });

  it('keeps the deletions of an emitter once for all of its subscribers, whatever their streams, until the last one leaves', () => {
    const [own, errors, other] = [new Listener(ONE), new Listener(ONE, '$errors'), new Listener(OTHER)];
    for (const listener of [own, errors, other]) hub.join(listener);
    take(0, 'a');
    const { key, value, headers } = deletionRecord({ emitterId: ONE }, { sign: () => '' });
    const message = { key: Buffer.from(key), value, headers, offset: '1', timestamp: '1000', attributes: 0 };
    hub.take(new LogRecord('events', 0, message, 1000));
    take(2, 'b', { stream: '$errors' });
    take(3, 'c', { emitterId: OTHER });
    const event = { stream: '' as const, place: eventPlace({ partition: 0, offset: 0, clock: 1000 }) };
    const later = eventPlace({ partition: 0, offset: 4, clock: 1000 });
    expect([...errors.deletions][0]).toBe([...own.deletions][0]);
    expect([own, other].map(({ deletions }) => [...deletions].map((each) => each.isDeleted(event, later)))).toEqual([[true], [false]]);
    for (const listener of [own, errors]) hub.leave(listener);
    const next = new Listener(ONE);
    hub.join(next);
    take(4, 'd');
    expect([...next.deletions].map((each) => each.isDeleted(event, later))).toEqual([false]);
  });

  it('passes on a record once, however often it is read', () => {
    const listener = new Listener(ONE);
    hub.join(listener);
    for (const offset of [0, 1, 0, 1, 2]) take(offset, `e${offset}`);
    expect(listener.taken).toEqual(['e0', 'e1', 'e2']);
  });

  it('splits the log at the seam: a subscriber gets the records above it, and the store has those below', () => {
    take(4, 'before');
    const listener = new Listener(ONE);
    const seam = hub.join(listener);
    take(5, 'after');
    expect(listener.taken).toEqual(['after']);
    const isFromStore = (partition: number, offset: number, clock = 1000) => isBelow(seam, eventPlace({ partition, offset, clock }));
    expect([isFromStore(0, 4), isFromStore(0, 5), isFromStore(1, 0)]).toEqual([true, false, false]);
    // of a log that was lost
    expect(isFromStore(0, 9, 999)).toBe(true);
  });

  it('counts an event that causes a subscriber to join as below its seam', () => {
    const late = new Listener(ONE);
    let seam: ReturnType<LiveHub['join']> | undefined;
    hub.join({ emitterId: ONE, stream: '', begin: () => {}, take: () => (seam ??= hub.join(late)) });
    take(0, 'first');
    expect({ taken: late.taken, offset: seam?.get(0)?.offset }).toEqual({ taken: [], offset: 1 });
  });

  it('passes nothing to a subscriber that has left', () => {
    const [gone, stays] = [new Listener(ONE), new Listener(ONE)];
    for (const listener of [gone, stays]) hub.join(listener);
    hub.leave(gone);
    hub.leave(gone);
    take(0, 'a');
    expect([gone.taken, stays.taken]).toEqual([[], ['a']]);
  });

  it('skips records that are not events, and those that are too large', () => {
    const listener = new Listener(ONE);
    hub.join(listener);
    take(0, 'broken', { json: '{' });
    take(1, 'large', { json: `"${'x'.repeat(200)}"` });
    take(2, 'good');
    expect(listener.taken).toEqual(['good']);
    expect(hub.positions.get(0)?.offset).toBe(3);
  });

  it('starts again at the position at which the log is read after a pause', () => {
    take(7, 'a');
    hub.reset();
    expect(hub.join(new Listener(ONE))).toEqual(new Map());
  });
});

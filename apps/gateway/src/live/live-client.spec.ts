import { beforeEach, describe, expect, it } from '@jest/globals';
import { eventIdOf, eventPlace, type EventPlace, type EventSummary } from '#events';
import { LiveClient, MOST_PENDING_BYTES, MOST_WAITING_BYTES, type WantedStream } from './live-client.js';
import { LiveEvent } from './live-event.js';
import { RecentDeletions } from './recent-deletions.js';

const EMITTER = 'dc_000000000000000001';

/** Collects the frames sent to a client until it reads them. */
class Frames {
  readonly ids: string[] = [];
  pending = 0;
  /** The most that was pending. */
  most = 0;
  /** The bytes in memory that were not written. */
  held = 0;
  readonly mayRemember = 1000;
  isCutOff = false;
  get isClosed(): boolean {
    return this.isCutOff;
  }
  write(frame: Buffer): void {
    this.ids.push(/^id: (.*)$/m.exec(frame.toString())?.[1] ?? frame.toString().trim());
    this.pending += frame.length;
    this.most = Math.max(this.most, this.pending);
  }
  read(): void {
    this.pending = 0;
  }
  hold(frame: Buffer): void {
    this.held += frame.length;
  }
  release(frame: Buffer): void {
    this.held -= frame.length;
  }
  async drained(): Promise<void> {
    this.read();
  }
  cutOff(): void {
    this.isCutOff = true;
  }
}

const at = (ms: number, seq = 0): EventPlace => ({ ms, seq });
const event = (place: EventPlace, { emitId = eventIdOf(place), bytes = 2, deletions = new RecentDeletions() } = {}) =>
  new LiveEvent(
    {
      kind: 'event',
      place,
      emitterId: EMITTER,
      stream: '',
      emitId,
      json: Buffer.from(`"${'x'.repeat(bytes)}"`),
      hops: 0,
    } as never,
    deletions,
  );
/** Those of all events before a place. */
const deletionsAt = (...places: EventPlace[]) => {
  const deletions = new RecentDeletions();
  for (const place of places) deletions.add({ kind: 'delete', emitterId: EMITTER, place, start: null, end: null, stream: null });
  return deletions;
};
const stored = (place: EventPlace, emit_id = eventIdOf(place)) =>
  ({ id: eventIdOf(place), metadata: { emit_id, name: '' } }) as EventSummary;

describe('the client of a live stream', () => {
  let frames: Frames;
  const connect = (wanted: Partial<WantedStream> = {}) =>
    new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after: null, ...wanted }, frames);
  beforeEach(() => {
    frames = new Frames();
  });

  it('gets the events that arrived while its response began, then the new ones', () => {
    const client = connect();
    client.take(event(at(1)));
    expect(frames.ids).toEqual([]);
    void client.goLive();
    client.take(event(at(2)));
    expect({ ids: frames.ids, sent: client.sent }).toEqual({ ids: ['1-0', '2-0'], sent: 2 });
  });

  it.each([
    ['while its response begins', true],
    ['later', false],
  ])('gets an emit again whose event was deleted %s', (_, waits) => {
    const client = connect();
    const [emitId, deletions] = ['a', deletionsAt(at(3))];
    if (!waits) void client.goLive();
    for (const ms of [1, 2, 4, 5]) client.take(event(at(ms), { emitId, deletions }));
    if (waits) void client.goLive();
    expect(frames.ids).toEqual(['1-0', '4-0']);
  });

  it('gets an emit again whose stored event was deleted', () => {
    const client = connect({ after: at(1) });
    client.knows(stored(at(1), 'a'));
    client.knows(stored(at(2), 'b'));
    void client.goLive();
    for (const [ms, emitId] of [
      [4, 'a'],
      [5, 'b'],
      [6, 'a'],
    ] as const)
      client.take(event(at(ms), { emitId, deletions: deletionsAt(at(3)) }));
    expect(frames.ids).toEqual(['4-0', '5-0']);
  });

  it('does not get a repeat of an emit that it has received again after a deletion, from another gateway', () => {
    const client = connect({ after: at(3) });
    void client.goLive();
    for (const ms of [1, 3, 4]) client.take(event(at(ms), { emitId: 'a', deletions: deletionsAt(at(2)) }));
    expect(frames.ids).toEqual([]);
  });

  it('holds the events that wait while its response begins', () => {
    const client = connect({ expand: true });
    for (let n = 1; n < 4; n++) client.take(event(at(n), { bytes: 100_000 }));
    expect(frames.held).toBeGreaterThan(300_000);
    void client.goLive();
    expect(frames.held).toBe(0);
  });

  it('gets the missed events before the waiting ones, and each event once', () => {
    const client = connect({ after: at(1) });
    client.take(event(at(3)));
    client.take(event(at(4)));
    for (const event of [stored(at(2)), stored(at(3))]) {
      client.sendStored(event, '{}');
      client.knows(event);
    }
    void client.goLive();
    expect(frames.ids).toEqual(['2-0', '3-0', '4-0']);
  });

  it('gets neither an event that it has received before nor a repeat of it', () => {
    const client = connect({ after: at(5) });
    void client.goLive();
    client.take(event(at(4), { emitId: 'same' }));
    client.take(event(at(5)));
    client.take(event(at(6), { emitId: 'same' }));
    client.take(event(at(7)));
    expect(frames.ids).toEqual(['7-0']);
  });

  describe('that names an event of a wrong clock', () => {
    const HOUR_MS = 3_600_000;
    const now = Date.now();
    /** In one of two partitions. */
    const inPartition = (partition: 0 | 1, offset: number, ms: number) => eventPlace({ partition, offset, clock: ms });
    const after = inPartition(0, 5, now + HOUR_MS);
    /** The clocks of the partitions at the seam. */
    const resumed = (...clocks: number[]) => {
      const client = connect({ after });
      client.begin(new Map(clocks.map((clock, partition) => [partition, { offset: 7, clock }])));
      void client.goLive();
      return client;
    };

    it.each([
      ['its partition', [now]],
      ['its partition, whatever the clock of another one is', [now, now + HOUR_MS]],
    ])('gets all events if it is in the future of %s', (_, clocks) => {
      const client = resumed(...clocks);
      for (const [partition, offset] of [
        [0, 7],
        [1, 7],
      ] as const)
        client.take(event(inPartition(partition, offset, now)));
      expect({ after: client.after, ids: frames.ids }).toEqual({
        after: null,
        ids: [inPartition(0, 7, now), inPartition(1, 7, now)].map(eventIdOf),
      });
    });

    it('gets the later events of its partition after the clock was corrected, but none that it has received', () => {
      const client = resumed(now + HOUR_MS, now);
      client.take(event(inPartition(0, 4, now)));
      client.take(event(after));
      client.take(event(inPartition(0, 6, now)));
      expect(frames.ids).toEqual([eventIdOf(inPartition(0, 6, now))]);
    });

    it('gets neither that nor those before it while the clocks of the brokers are far ahead', () => {
      const client = resumed(now + HOUR_MS, now + HOUR_MS);
      for (const [partition, offset] of [
        [0, 5],
        [1, 9],
      ] as const)
        client.take(event(inPartition(partition, offset, now + HOUR_MS - 1)));
      expect(frames.ids).toEqual([]);
    });

    it('gets the events of a log that has replaced that of the event', () => {
      const client = resumed(now + HOUR_MS);
      client.take(event(inPartition(0, 0, now + HOUR_MS + 1)));
      expect(frames.ids).toHaveLength(1);
    });
  });

  it('does not get a repeat of an event that the store has', () => {
    const client = connect({ after: at(5) });
    client.knows(stored(at(5), 'first'));
    void client.goLive();
    client.take(event(at(6), { emitId: 'first' }));
    client.take(event(at(6, 1), { emitId: 'second' }));
    expect(frames.ids).toEqual(['6-1']);
  });

  it('gets a comment that events may be missing, which does not count as an event', () => {
    const client = connect();
    client.remarkGap();
    expect({ ids: frames.ids, sent: client.sent }).toEqual({
      ids: [': only the last 100 events are kept: there may have been more'],
      sent: 0,
    });
  });

  it.each([
    ['while its response begins', false, MOST_WAITING_BYTES],
    ['when it is live', true, MOST_PENDING_BYTES],
  ])('is disconnected if it does not read %s, but not for one large event', (_, isLive, most) => {
    const client = connect({ expand: true });
    if (isLive) void client.goLive();
    client.take(event(at(1), { bytes: most - 1000 }));
    expect(frames.isCutOff).toBe(false);
    for (let n = 2; n < 5; n++) client.take(event(at(n), { bytes: 1000 }));
    expect(frames.isCutOff).toBe(true);
  });

  it('gets nothing more once it is disconnected', () => {
    const client = connect({ expand: true });
    frames.cutOff();
    client.take(event(at(1), { bytes: 100_000 }));
    expect(frames.held).toBe(0);
  });

  it('gets events that waited as fast as it reads, and those that arrive meanwhile after them', async () => {
    const client = connect({ expand: true });
    const large = { bytes: MOST_PENDING_BYTES };
    for (let n = 1; n < 4; n++) client.take(event(at(n), large));
    const live = client.goLive();
    client.take(event(at(4), large));
    await live;
    frames.read();
    client.take(event(at(5)));
    expect(frames.ids).toEqual([1, 2, 3, 4, 5].map((n) => eventIdOf(at(n))));
    expect(frames.isCutOff).toBe(false);
    expect(frames.held).toBe(0);
    expect(frames.most).toBeLessThan(1.1 * MOST_PENDING_BYTES);
  });

  it('gets many events that waited in several turns of the event loop, in order with those that arrive meanwhile', async () => {
    const client = connect();
    for (let n = 1; n <= 2000; n++) client.take(event(at(n)));
    const live = client.goLive();
    expect(client.sent).toBeLessThan(500);
    client.take(event(at(2001)));
    await live;
    client.take(event(at(2002)));
    expect(frames.ids).toEqual(Array.from({ length: 2002 }, (_, n) => eventIdOf(at(n + 1))));
    expect(frames.held).toBe(0);
  });

  it('is not disconnected while it reads', () => {
    const client = connect({ expand: true });
    void client.goLive();
    for (let n = 1; n < 5; n++) {
      client.take(event(at(n), { bytes: MOST_PENDING_BYTES - 1000 }));
      frames.read();
    }
    expect({ isCutOff: frames.isCutOff, sent: client.sent }).toEqual({ isCutOff: false, sent: 4 });
  });
});

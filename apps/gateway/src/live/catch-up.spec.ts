import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { EmitterId, EventPage } from '#contracts';
import { deletionRecord, eventIdOf, type EventLogRecord, type EventPlace, eventPlace } from '#events';
import { catchUp, type StoredStream } from './catch-up.js';
import { LiveClient, type Outlet } from './live-client.js';
import { LiveHub } from './live-hub.js';
import { StoreForTests } from './store-for-tests.js';

const EMITTER: EmitterId = 'dc_1';

/** The ids that a client got, in the order in which it got them. */
class Screen implements Outlet {
  readonly ids: string[] = [];
  readonly remarks: string[] = [];
  /** The number of events that were sent before each remark. */
  readonly remarkedAfter: number[] = [];
  pending = 0;
  cut = false;
  readonly mayRemember = 1000;

  get isClosed(): boolean {
    return this.cut;
  }
  write(frame: Buffer): void {
    const [first = ''] = frame.toString().split('\n');
    if (first.startsWith('id: ')) this.ids.push(first.slice(4));
    else {
      this.remarks.push(first);
      this.remarkedAfter.push(this.ids.length);
    }
  }
  hold(): void {}
  release(): void {}
  async drained(): Promise<void> {}
  cutOff(): void {
    this.cut = true;
  }
}

const record = (offset: number, emitId = `emit ${offset}`, json = String(offset)): EventLogRecord => ({
  partition: 1,
  offset,
  // several events in one millisecond
  clock: 1000 + Math.floor(offset / 3),
  key: EMITTER,
  value: Buffer.from(json),
  header: (name) => (name === 'ce_id' ? emitId : undefined),
  headerNames: () => ['ce_id'],
});
/** A deletion of all events before it. */
const deletion = (offset: number): EventLogRecord => {
  const { value, headers } = deletionRecord({ emitterId: EMITTER }, { sign: () => '' }, 1000);
  return { ...record(offset), value, header: (name) => headers[name], headerNames: () => Object.keys(headers) };
};
const placeOf = ({ offset, clock }: EventLogRecord): EventPlace => eventPlace({ partition: 1, offset, clock });

describe('catching up', () => {
  it('misses nothing and sends nothing twice, whenever a client joins and wherever the store and the reader are', async () => {
    await fc.assert(
      fc.asyncProperty(
        // which record repeats the emit of which earlier one
        fc.array(fc.option(fc.nat({ max: 5 }), { freq: 5 }), { minLength: 1, maxLength: 60 }),
        fc.nat(),
        fc.nat(),
        fc.nat(),
        fc.boolean(),
        fc.scheduler(),
        async (repeats, seenSeed, readSeed, storedSeed, expand, scheduler) => {
          const log = repeats.map((back, offset) => record(offset, `emit ${back === null || back > offset ? offset : offset - back}`));
          const firstOf = new Map<string, EventLogRecord>();
          for (const each of log) if (!firstOf.has(each.header('ce_id')!)) firstOf.set(each.header('ce_id')!, each);
          const emitted = log.filter((each) => firstOf.get(each.header('ce_id')!) === each);
          // the client has received the first of them from another gateway: the reader here may be behind that
          const seen = seenSeed % log.length;
          const expected = emitted.filter(({ offset }) => offset > seen).map((each) => eventIdOf(placeOf(each)));
          // the store has the events that the client has received only if it is ahead; the reader never starts ahead of the store
          const store = new StoreForTests(EMITTER, scheduler, { perPage: 7 });
          const hub = new LiveHub();
          const screen = new Screen();
          const client = new LiveClient({ emitterId: EMITTER, stream: '', expand, after: placeOf(log[seen]!) }, screen);
          const [readBefore, storedBefore] = [readSeed % (log.length + 1), storedSeed % (log.length + 1)];
          log.slice(0, readBefore).forEach((each) => hub.take(each));
          store.take(log.slice(0, storedBefore));
          const seam = hub.join(client);
          const reading = scheduler.scheduleSequence(log.slice(readBefore).map((each) => async () => hub.take(each)));
          const storing = scheduler.scheduleSequence(log.slice(storedBefore).map((each) => async () => store.take([each])));
          const caughtUp = catchUp(client, placeOf(log[seen]!), seam, store);
          await scheduler.waitFor(Promise.all([reading.task, storing.task, caughtUp]));
          expect(screen.ids).toEqual(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('sends an emit again whose event was deleted, but no other one, whenever a client joins and wherever the store and the reader are', async () => {
    await fc.assert(
      fc.asyncProperty(
        // the ids of emits; null: a deletion
        fc.array(fc.option(fc.nat({ max: 5 }), { freq: 5 }), { minLength: 2, maxLength: 40 }),
        ...([fc.nat(), fc.nat(), fc.nat()] as const),
        fc.scheduler(),
        async (entries, seenSeed, readSeed, storedSeed, scheduler) => {
          const log = [record(0, 'first')];
          // the event of each emit, which its repeats repeat until it is deleted
          const eventOf = new Map([[log[0]!, log[0]!]]);
          const [current, deleted] = [new Map([['first', log[0]!]]), new Set<EventLogRecord>()];
          for (const id of entries) {
            const next = id === null ? deletion(log.length) : record(log.length, `emit ${id}`);
            log.push(next);
            if (id === null) {
              for (const event of current.values()) deleted.add(event);
              current.clear();
              continue;
            }
            if (!current.has(`emit ${id}`)) current.set(`emit ${id}`, next);
            eventOf.set(next, current.get(`emit ${id}`)!);
          }
          const events = [...new Set(eventOf.values())];
          const seen = events[seenSeed % events.length]!;
          const store = new StoreForTests(EMITTER, scheduler, { perPage: 7 });
          const hub = new LiveHub();
          const screen = new Screen();
          const client = new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after: placeOf(seen) }, screen);
          const [readBefore, storedBefore] = [readSeed % (log.length + 1), storedSeed % (log.length + 1)];
          log.slice(0, readBefore).forEach((each) => hub.take(each));
          store.take(log.slice(0, storedBefore));
          const seam = hub.join(client);
          const reading = scheduler.scheduleSequence(log.slice(readBefore).map((each) => async () => hub.take(each)));
          const storing = scheduler.scheduleSequence(log.slice(storedBefore).map((each) => async () => store.take([each])));
          const caughtUp = catchUp(client, placeOf(seen), seam, store);
          await scheduler.waitFor(Promise.all([reading.task, storing.task, caughtUp]));
          const sent = log.filter((each) => screen.ids.includes(eventIdOf(placeOf(each))));
          expect(screen.ids).toEqual(sent.filter(({ offset }) => offset > seen.offset).map((each) => eventIdOf(placeOf(each))));
          // a deleted one may be missing; then a repeat of it may be sent. If the client got it from a store that was behind, it may be sent again
          if (storedBefore >= readBefore) expect(new Set(sent.map((each) => eventOf.get(each))).size).toBe(sent.length);
          expect(sent.filter((each) => !deleted.has(eventOf.get(each)!))).toEqual(
            events.filter((each) => each.offset > seen.offset && !deleted.has(each)),
          );
        },
      ),
      { numRuns: 2000 },
    );
  });

  it('sends the events that waited at once, however many deletions came before them', () => {
    const screen = new Screen();
    const hub = new LiveHub();
    const client = new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after: null }, screen);
    hub.join(client);
    for (let offset = 0; offset < 1000; offset++) hub.take(deletion(offset));
    hub.take(record(1000));
    void client.goLive();
    expect(screen.ids).toHaveLength(1);
  });

  it('sends all events from the seam on, in order, even when the store no longer keeps any of them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 40 }), fc.boolean(), fc.scheduler(), async (readBefore, expand, scheduler) => {
        const log = Array.from({ length: 40 }, (_, offset) => record(offset));
        const store = new StoreForTests(EMITTER, scheduler, { perPage: 2, kept: 3 });
        const hub = new LiveHub();
        const screen = new Screen();
        const after = placeOf(log[0]!);
        const client = new LiveClient({ emitterId: EMITTER, stream: '', expand, after }, screen);
        log.slice(0, readBefore).forEach((each) => hub.take(each));
        // far ahead of the reader
        store.take(log);
        const seam = hub.join(client);
        const reading = scheduler.scheduleSequence(log.slice(readBefore).map((each) => async () => hub.take(each)));
        await scheduler.waitFor(Promise.all([reading.task, catchUp(client, after, seam, store)]));
        const kept = log.slice(1, readBefore).filter(({ offset }) => offset >= 37);
        const live = log.slice(Math.max(1, readBefore));
        expect(screen.ids).toEqual([...kept, ...live].map((each) => eventIdOf(placeOf(each))));
      }),
      { numRuns: 200 },
    );
  });

  it('sends all that is stored of a log that was lost, whose events may have higher offsets than the seam', async () => {
    const lost = Array.from({ length: 10 }, (_, offset) => record(offset));
    const log = Array.from({ length: 4 }, (_, offset) => ({ ...record(offset, `new ${offset}`), clock: 2000 }));
    const store = new StoreForTests(EMITTER, undefined, { perPage: 100 });
    store.take([...lost, ...log]);
    const hub = new LiveHub();
    for (const each of log) hub.take(each);
    const screen = new Screen();
    const after = placeOf(lost[0]!);
    const client = new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after }, screen);
    await catchUp(client, after, hub.join(client), store);
    expect(screen.ids).toEqual([...lost.slice(1), ...log].map((each) => eventIdOf(placeOf(each))));
  });

  it('reports that there may have been more events than are kept, before it sends the first of them', async () => {
    const remarksAfter = async (count: number) => {
      const store = new StoreForTests(EMITTER, undefined, { perPage: 100 });
      store.take(Array.from({ length: count }, (_, offset) => record(offset)));
      const screen = new Screen();
      const after = placeOf(record(0));
      await catchUp(
        new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after }, screen),
        after,
        new Map([[1, { offset: count, clock: 0 }]]),
        store,
      );
      expect(screen.ids).toHaveLength(Math.min(count - 1, 100));
      return [screen.remarks, screen.remarkedAfter];
    };
    expect(await remarksAfter(100)).toEqual([[], []]);
    expect(await remarksAfter(150)).toEqual([[': only the last 100 events are kept: there may have been more'], [0]]);
  });

  it('has one page of missed events in memory at a time, however many were missed', async () => {
    const store = new StoreForTests(EMITTER, undefined, { perPage: 100, kept: 5000 });
    store.take(Array.from({ length: 5000 }, (_, offset) => record(offset)));
    const screen = new Screen();
    let largest = 0;
    screen.drained = async () => {
      largest = Math.max(largest, screen.ids.length - read);
      read = screen.ids.length;
    };
    let read = 0;
    const after = placeOf(record(0));
    const client = new LiveClient({ emitterId: EMITTER, stream: '*', expand: false, after }, screen);
    await catchUp(client, after, new Map([[1, { offset: 5000, clock: 0 }]]), store);
    expect({ sent: screen.ids.length, largest, pages: store.pages }).toEqual({ sent: 4999, largest: 100, pages: 53 });
  });

  it.each([
    ['of the default stream', '', { '': 100 }, 2],
    ['of all streams', '*', { a: 50, b: 90, c: 90 }, 4],
    [
      'of all streams if these have more than a client remembers',
      '*',
      Object.fromEntries(Array.from({ length: 30 }, (_, n) => [n, 90])),
      2,
    ],
  ])('reads few events %s to recognise repeats of those that the client has received', async (_, stream, counts, pages) => {
    const log: EventLogRecord[] = [];
    for (const [name, count] of Object.entries<number>(counts))
      for (let n = 0; n < count; n++) {
        const header = (key: string) => ({ ce_id: `emit ${n}`, ce_type: name || 'default' })[key];
        log.push({ ...record(log.length), header, headerNames: () => ['ce_id', 'ce_type'] });
      }
    const store = new StoreForTests(EMITTER, undefined, { perPage: 100, kept: log.length });
    store.take(log);
    const hub = new LiveHub();
    for (const each of log) hub.take(each);
    const [screen, after] = [new Screen(), placeOf(log.at(-1)!)];
    const client = new LiveClient({ emitterId: EMITTER, stream, expand: false, after }, screen);
    await catchUp(client, after, hub.join(client), store);
    expect(store.pages).toBe(pages);
    // one that the client may have received long ago
    const repeated = log.length > 1000 ? log.length - 90 : 0;
    hub.take({ ...log[repeated]!, offset: log.length, clock: 9000 });
    expect(screen.ids).toEqual([]);
  });

  it('goes live when it has read what was stored when it began, although the emitter stores more events than a page during each request', async () => {
    const store = new StoreForTests(EMITTER, undefined, { perPage: 100, kept: 5000 });
    const hub = new LiveHub();
    const [screen, after] = [new Screen(), placeOf(record(0))];
    const client = new LiveClient({ emitterId: EMITTER, stream: '*', expand: false, after }, screen);
    let next = 0;
    const emit = (count: number) => {
      const events = Array.from({ length: count }, () => record(next++));
      for (const event of events) hub.take(event);
      store.take(events);
    };
    emit(300);
    const seam = hub.join(client);
    const busy: StoredStream = {
      reached: (at) => store.reached(at),
      page: (window) => {
        if (store.pages > 20) throw new Error('it reads pages endlessly');
        emit(150);
        return store.page(window);
      },
    };
    await catchUp(client, after, seam, busy);
    expect(screen.ids).toEqual(Array.from({ length: next - 1 }, (_, n) => eventIdOf(placeOf(record(n + 1)))));
  });

  it('sends what a store has that is behind', async () => {
    const [store, screen, after] = [new StoreForTests(EMITTER, undefined, { perPage: 100 }), new Screen(), placeOf(record(0))];
    const client = new LiveClient({ emitterId: EMITTER, stream: '', expand: false, after }, screen);
    const caughtUp = catchUp(client, after, new Map([[1, { offset: 4, clock: 0 }]]), store);
    for (let offset = 0; offset < 4; offset++) {
      expect(screen.ids).toHaveLength(Math.max(0, offset - 1));
      store.take([record(offset)]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await caughtUp;
    expect(screen.ids).toHaveLength(3);
  });

  it('sends the repeat of an event once that it has sent while the store was behind, however many followed', async () => {
    const [store, screen, hub] = [new StoreForTests(EMITTER, undefined, { perPage: 100, kept: 500 }), new Screen(), new LiveHub()];
    const of = (stream: string, offset: number, emitId = `emit ${offset}`): EventLogRecord => ({
      ...record(offset),
      header: (name) => ({ ce_id: emitId, ce_sluicestream: stream })[name],
      headerNames: () => ['ce_id', 'ce_sluicestream'],
    });
    const log = Array.from({ length: 250 }, (_, offset) => of(`s${offset % 10}`, offset));
    for (const each of log) hub.take(each);
    const after = placeOf(log[0]!);
    const client = new LiveClient({ emitterId: EMITTER, stream: '*', expand: false, after }, screen);
    store.take(log.slice(0, 200));
    const caughtUp = catchUp(client, after, hub.join(client), store);
    store.take([log[200]!]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(screen.ids).toHaveLength(200);
    store.take(log.slice(201));
    await caughtUp;
    expect(screen.ids).toHaveLength(249);
    hub.take(of('s1', 250, 'emit 1'));
    hub.take(of('s1', 251));
    expect(screen.ids.slice(249)).toEqual([eventIdOf(placeOf(record(251)))]);
  });

  it('reports that there may have been more events if later ones replace some while it reads', async () => {
    const of = (stream: string, from: number, count: number): EventLogRecord[] =>
      Array.from({ length: count }, (_, n) => ({
        ...record(from + n),
        header: (name) => ({ ce_id: `${from + n}`, ce_type: stream })[name],
      }));
    const remarksIf = async (later: number) => {
      const hub = new LiveHub();
      const [screen, after] = [new Screen(), placeOf(record(0))];
      const client = new LiveClient({ emitterId: EMITTER, stream: '*', expand: false, after }, screen);
      const missed = [...of('a', 1, 60), ...of('b', 61, 60), ...of('c', 121, 1)];
      for (const each of missed) hub.take(each);
      const seam = hub.join(client);
      interface StoredEvent {
        id: string;
        json: string;
      }
      const replacing = of('b', 200, later);
      const [newest, ...stored] = [replacing.at(-1)!, ...missed].map((each) => ({
        id: eventIdOf(placeOf(each)),
        json: `{"id":"${eventIdOf(placeOf(each))}","indexed_at_ms":1,"event":1,"metadata":{"emit_id":"${each.offset}","name":"${each.header('ce_type')}"}}`,
      })) as [StoredEvent, ...StoredEvent[]];
      const pageOf = (events: StoredEvent[]): EventPage => ({
        page_info: { total_count: 0, count: events.length, start_cursor: events.at(-1)?.id ?? null, end_cursor: events[0]?.id ?? null },
        items: events.map(({ json }) => json).toReversed(),
      });
      const pages = [pageOf(stored.slice(0, 100)), pageOf(stored.slice(120))];
      await catchUp(client, after, seam, {
        reached: async () => true,
        page: async ({ before, limit }) => {
          if (before === undefined && limit === 1) return pageOf([pages.length > 0 ? stored.at(-1)! : newest]);
          if (before === undefined) return pageOf([]);
          // the last page lacks the events that were replaced, and the reader is behind the store
          if (pages.length === 1) setImmediate(() => replacing.forEach((each) => hub.take(each)));
          return pages.shift()!;
        },
      });
      return screen.remarks.length;
    };
    expect([await remarksIf(59), await remarksIf(100)]).toEqual([0, 1]);
  });

  it('disconnects a client for which too many events wait in the meantime', () => {
    const screen = new Screen();
    const hub = new LiveHub();
    hub.join(new LiveClient({ emitterId: EMITTER, stream: '', expand: true, after: { ms: 0, seq: 0 } }, screen));
    for (let n = 1; n <= 8; n++) hub.take(record(n, `e${n}`, JSON.stringify('x'.repeat(1_000_000))));
    expect(screen.cut).toBe(false);
    hub.take(record(9, 'e9', JSON.stringify('x'.repeat(1_000_000))));
    expect(screen.cut).toBe(true);
  });
});

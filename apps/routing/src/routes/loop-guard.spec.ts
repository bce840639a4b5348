import { describe, expect, it } from '@jest/globals';
import { type EmittedEvent, readEventRecord } from '#events';
import { loopReport, MAX_HOPS, MAX_SPREAD, mayTrigger } from './triggers.js';

const event = (change: Partial<EmittedEvent> = {}): EmittedEvent => ({
  kind: 'event',
  place: { ms: 1_700_000_000_000, seq: 7 },
  emitterId: 'dc_1',
  stream: '',
  emitId: 'emit',
  json: Buffer.from('{"a":1}'),
  hops: MAX_HOPS + 1,
  ...change,
});
const read = (report: ReturnType<typeof loopReport>) => {
  if (!report) throw new Error('no report');
  const { key, value, headers } = report;
  return readEventRecord({
    partition: 0,
    offset: 0,
    clock: 1_700_000_000_001,
    key,
    value,
    header: (name) => headers[name],
    headerNames: () => Object.keys(headers),
  }) as EmittedEvent;
};

describe('the loop guard', () => {
  it('lets an event of 16 hops trigger, and none past them', () => {
    expect([mayTrigger({ hops: 16 }), mayTrigger({ hops: 17 })]).toEqual([true, false]);
  });

  it("reports LoopDetected on the emitter's $errors, with the event", () => {
    const report = read(loopReport(event(), 'u_1'));
    expect(report).toMatchObject({ kind: 'event', emitterId: 'dc_1', stream: '$errors' });
    expect(JSON.parse(report.json.toString())).toMatchObject({
      error: { code: 'LoopDetected' },
      original_event: { a: 1 },
      original_context: { source_id: 'dc_1', owner_id: 'u_1', event_id: '1700000000000-7' },
    });
  });

  it('reports it by an event that triggers nothing and is not reported itself', () => {
    const report = read(loopReport(event(), 'u_1'));
    expect(mayTrigger(report)).toBe(false);
    expect(loopReport(report, 'u_1')).toBeUndefined();
  });

  it('reports the same emit when the event is read twice, and another one for another event', () => {
    const [once, twice, other] = [event(), event(), event({ place: { ms: 1_700_000_000_000, seq: 8 } })].map(
      (each) => read(loopReport(each, 'u_1')).emitId,
    );
    expect(twice).toBe(once);
    expect(other).not.toBe(once);
  });

  it('lets one cause become ten thousand events and runs, whatever the ways it branches', () => {
    const at = (spread: number) => ({ hops: 2, cause: { root: 'r', spread } });
    expect([mayTrigger(at(MAX_SPREAD)), mayTrigger(at(MAX_SPREAD / 10), 10), mayTrigger({ hops: 2 }, 16)]).toEqual([true, true, true]);
    expect([mayTrigger(at(MAX_SPREAD + 1)), mayTrigger(at(MAX_SPREAD / 10), 11)]).toEqual([false, false]);
  });

  it('reports why a tree that is too wide ends, by an event that triggers nothing', () => {
    const report = read(loopReport(event({ hops: 3, cause: { root: 'r', spread: 9000 } }), 'u_1', 2));
    expect(JSON.parse(report.json.toString()).error).toMatchObject({
      code: 'LoopDetected',
      message: expect.stringMatching(/more than 10000/),
    });
    expect(report.cause?.root).toBe('r');
    expect(mayTrigger(report)).toBe(false);
  });

  it('speaks of an error that loops too', () => {
    expect(loopReport(event({ stream: '$errors', json: Buffer.from('null') }), 'u_1')).toBeDefined();
    expect(loopReport(event({ stream: '$errors', json: Buffer.from('{"error":{"code":"X"}}') }), 'u_1')).toBeDefined();
  });
});

import { describe, expect, it } from '@jest/globals';
import { type EmittedEvent, runIdOf } from '#events';
import { runsOf } from './triggers.js';

const json = '{"text":"a \\"quote\\", $& and \\u2028","umlaut":"ü"}';
const event: EmittedEvent = {
  kind: 'event',
  place: { ms: 1_700_000_000_000, seq: 7 },
  emitterId: 'dc_emitter',
  stream: '',
  emitId: 'emit',
  json: Buffer.from(json),
  hops: 3,
};
const payloadOf = ({ value }: ReturnType<ReturnType<typeof runsOf>>): unknown => JSON.parse(String(value));

describe('the runs of an event', () => {
  it('have the text of the event byte for byte', () => {
    const runOf = runsOf(event, 'u_1', 2);
    const common = {
      owner_id: 'u_1',
      trigger: 'event',
      event: json,
      due_at_ms: event.place.ms,
      hops: 3,
      cause: { root: 'emit', spread: 2 },
    };
    expect([runOf('dc_1'), runOf('dc_2')].map(payloadOf)).toEqual([
      { run_id: runIdOf(event, 'dc_1'), source_id: 'dc_1', ...common },
      { run_id: runIdOf(event, 'dc_2'), source_id: 'dc_2', ...common },
    ]);
  });

  it('have another run id in a replay than in the event itself', () => {
    expect(payloadOf(runsOf(event, 'u_1')('dc_1', 'replayed'))).toMatchObject({ run_id: 'replayed', cause: { root: 'emit', spread: 1 } });
  });

  it('encode the event once, however many sources listen', () => {
    const text = 'x'.repeat(10_000);
    let encoded = 0;
    const counting = {
      ...event,
      json: Object.assign(Buffer.from(`"${text}"`), { toString: () => ((encoded += 1), `"${text}"`) }),
    };
    const runOf = runsOf(counting, 'u_1', 100);
    for (let n = 0; n < 100; n++) runOf(`dc_${n}`);
    expect(encoded).toBe(1);
  });
});

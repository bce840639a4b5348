import { describe, expect, it } from '@jest/globals';
import type { EmittedEvent } from '#events';
import { errorFact } from './error-records.js';

const event = (json: unknown, change: Partial<EmittedEvent> = {}): EmittedEvent => ({
  kind: 'event',
  place: { ms: 1_700_000_000_000, seq: 7 },
  emitterId: 'p_1',
  stream: '$errors',
  emitId: 'emit',
  json: Buffer.from(JSON.stringify(json)),
  hops: 0,
  ...change,
});
const factOf = (each: EmittedEvent) => JSON.parse(String(errorFact(each, 'u_1')?.value)) as Record<string, unknown>;

describe('the fact of an error', () => {
  it('is raised for $errors only', () => {
    expect(errorFact(event({}, { stream: '' }), 'u_1')).toBeUndefined();
    expect(errorFact(event({}, { stream: '$logs' }), 'u_1')).toBeUndefined();
  });

  it('is not raised for the event about a disabled webhook, which has a fact already', () =>
    expect(errorFact(event({ error: { code: 'WebhookDisabled', message: 'gone' } }), 'u_1')).toBeUndefined());

  it('names the account, what failed, and the event', () => {
    expect(errorFact(event({}), 'u_1')).toMatchObject({ topic: 'routing.error.raised', key: 'u_1' });
    expect(factOf(event({ error: { code: 'E', message: 'oh' } }))).toMatchObject({
      owner_id: 'u_1',
      subject_id: 'p_1',
      code: 'E',
      message: 'oh',
      event_id: '1700000000000-7',
      raised_at_ms: 1_700_000_000_000,
    });
  });

  it('is the same when a producer sends the emit twice', () => {
    const [once, twice, other] = [event({}), event({}, { place: { ms: 1, seq: 1 } }), event({}, { emitId: 'x' })].map(
      (each) => factOf(each).id,
    );
    expect(twice).toBe(once);
    expect(other).not.toBe(once);
  });

  it.each([
    [{ error: { code: 'E', stack: 'E: first\n at x' } }, 'E', 'E: first'],
    [{ error: { name: 'TypeError', message: 'm' } }, 'TypeError', 'm'],
    [{ error: 'it broke' }, 'Error', 'it broke'],
    [{ code: 'C', message: 'm' }, 'C', 'm'],
    ['just text', 'Error', 'just text'],
    [null, 'Error', 'null'],
    [[1, 2], 'Error', '[1,2]'],
    [{ error: { code: 17, message: {} } }, 'Error', '{"error":{"code":17,"message":{}}}'],
  ])('reads %j', (json, code, message) => {
    expect(factOf(event(json))).toMatchObject({ code, message });
  });
});

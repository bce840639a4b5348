import { describe, expect, it } from '@jest/globals';
import { subscriptionProblems } from './subscription-problems.js';

const fields = (emitter: string, listener: string, name: string) => subscriptionProblems(emitter, listener, name).map(({ field }) => field);

describe('a subscription', () => {
  it.each(['dc_1', 'p_abc', 'dc_does_not_exist', 'dc_*', 'p_*', 'u_1'])('may name the emitter %s', (emitter) => {
    expect(fields(emitter, 'wh_1', '')).toEqual([]);
  });

  it.each(['', '*', 'dc_', 'p_**', 'wh_1', 'wh_*', 'u_*', 'dc_1*', 'DC_1', 'dc_1 ', 'p_%2A'])('may not name the emitter %j', (emitter) => {
    expect(fields(emitter, 'wh_1', '')).toEqual(['emitter_id']);
  });

  it.each(['dc_1', 'p_1', 'wh_1'])('may name the listener %s', (listener) => {
    expect(fields('dc_1', listener, '')).toEqual([]);
  });

  it.each(['', 'u_1', 'dc_*', 'p_*', 'sub_1', 'wh_'])('may not name the listener %j', (listener) => {
    expect(fields('dc_1', listener, '')).toEqual(['listener_id']);
  });

  it.each(['', 'default', '$errors', '$logs', 'orders', 'ä'.repeat(128)])('may name the stream %j', (name) => {
    expect(fields('dc_1', 'wh_1', name)).toEqual([]);
  });

  it.each(['$in', '$x', '$', 'x'.repeat(129), 'a\0b'])('may not name the stream %j', (name) => {
    expect(fields('dc_1', 'wh_1', name)).toEqual(['event_name']);
  });

  it('has all its problems reported at once', () => {
    expect(fields('x', 'y', '$z')).toEqual(['emitter_id', 'listener_id', 'event_name']);
  });
});

import { expect, it } from '@jest/globals';
import { emitKeyOf, runIdOf } from './run-id.js';

const emit = (stream: string, emitId: string) => ({ emitterId: 'dc_0VcCPSbT3hlcRZZull', stream, emitId }) as const;

it('emits whose names have line breaks are different ones', () => {
  const emits = [emit('a\nb', 'c'), emit('a', 'b\nc'), emit('', 'a\nb\nc'), emit('["a\\nb","c"]', '')];
  expect(new Set(emits.map(emitKeyOf)).size).toBe(4);
  expect(new Set(emits.map((each) => runIdOf(each, 'dc_0VcCPSbT3hlcRZZmcb'))).size).toBe(4);
});

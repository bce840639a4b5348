import { expect, it } from '@jest/globals';
import { readErrorEvent } from '#events';
import { streamsRemoved } from './streams-removed.js';

it('the removal of streams is reported on $errors of the emitter, and names the limit', () => {
  const { key, value, headers } = streamsRemoved('dc_1', 'u_1', new Date(1_700_000_000_000));
  expect({ key, type: headers.ce_type, ...readErrorEvent(value) }).toEqual({
    ...{ key: 'dc_1', type: '$errors', code: 'TooManyStreams' },
    message: 'the emitter has more than 1000 custom streams; the stored events of the oldest ones were removed',
  });
  expect(JSON.parse(String(value))).toMatchObject({ original_context: { source_id: 'dc_1', owner_id: 'u_1' } });
});

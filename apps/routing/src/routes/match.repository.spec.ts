import { expect, it, jest } from '@jest/globals';
import type { SourceId } from '#contracts';
import type { Database } from '#database';
import type { EmittedEvent } from '#events';
import type { EmitterDirectory } from '#emitters';
import { createLog } from '#observability';
import { MatchRepository } from './match.repository.js';

it('logs an unknown emitter once a minute, and at most 100 of them', async () => {
  const log = createLog('test', 'silent');
  const warn = jest.spyOn(log, 'warn');
  const database = { query: async () => ({ rows: [] }) } as unknown as Database;
  const repository = new MatchRepository(database, { find: async () => new Map() } as unknown as EmitterDirectory, log);
  const introduce = (...ids: SourceId[]) =>
    repository.introduce(
      ids.map((emitterId, seq): EmittedEvent => {
        return { kind: 'event', place: { ms: 1, seq }, emitterId, stream: '', emitId: 'e', json: Buffer.from('1'), hops: 0 };
      }),
    );
  await introduce('dc_1', 'dc_1', 'dc_2');
  expect(warn.mock.calls).toEqual([
    [{ emitter_id: 'dc_1', event_id: '1-0' }, 'event.of-unknown-emitter'],
    [{ emitter_id: 'dc_2', event_id: '1-2' }, 'event.of-unknown-emitter'],
  ]);
  await introduce(...Array.from({ length: 2000 }, (_, n): SourceId => `dc_${n}`));
  expect(warn).toHaveBeenCalledTimes(100);
});

import { describe, expect, it } from '@jest/globals';
import { Batch, LogRecord, type OutgoingRecord } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { EventStoreConfig } from '../event-store.config.js';
import { AppendController } from './append.controller.js';

const recordOf = (offset: number, value: string) =>
  new LogRecord(
    'events',
    0,
    { offset: `${offset}`, timestamp: '1', key: Buffer.from('dc_1'), value: Buffer.from(value), attributes: 0, headers: {} },
    1,
  );

describe('the malformed records of a batch', () => {
  it('go to the dead-letter topic in one request, before the batch is stored, and once', async () => {
    const requests: (string | undefined)[][] = [];
    let fails = true;
    const publisher = {
      send: async (records: OutgoingRecord[]) => void requests.push(records.map(({ headers }) => headers?.['dead-letter-offset'])),
    };
    const appending = {
      append: async () => {
        expect(requests).toHaveLength(1);
        if (fails) throw new Error('no database');
        return { stored: 1, repeated: 0 };
      },
    };
    const controller = new AppendController(
      createLog('test', 'silent'),
      publisher as never,
      appending as never,
      {} as never,
      EventStoreConfig.read({}),
      new SecretBox([]),
      {} as never,
    );
    const records = ['{', '1', 'Obj', ''].map((value, offset) => recordOf(offset, value));
    const batch = new Batch(0, records, { offset: 0, clock: 0 }, { offset: 4, clock: 1 });
    await expect(controller.append(batch)).rejects.toThrow('no database');
    fails = false;
    await controller.append(batch);
    expect(requests).toEqual([['0', '2', '3']]);
  });
});

import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type Emitter, EmitterDirectory } from '#emitters';
import { type EventToProduce, readEventRecord } from '#events';
import { AccountPace, EVENT_UNITS } from '#fairness';
import { SecretBox } from '#secrets';
import { DeletionsService } from './deletions.service.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';

const ME = 'u_000000000000000001';
const SOURCE = 'dc_000000000000000001';
const box = new SecretBox([Buffer.alloc(32)]);
const place = (seq: number) => ({ ms: 100, seq });

describe('the events of a source', () => {
  let sent: EventToProduce[];
  let writtenOnce: boolean;
  let source: Pick<Emitter, 'owner_id' | 'deleted'>;
  /** The ids that were looked up in the catalog, because the gateway's table lacks them. */
  let lookedUp: string[];
  let spent: { account: string; units: number }[];
  let deletions: DeletionsService;

  beforeEach(async () => {
    sent = [];
    lookedUp = [];
    spent = [];
    source = { owner_id: ME, deleted: false };
    const directory = {
      look: async (id: string) => (id === SOURCE ? source : undefined),
      find: async (ids: string[]) => {
        lookedUp.push(...ids);
        return new Map();
      },
    };
    const append = async (_: string, records: EventToProduce[], { once = false } = {}) => {
      sent.push(...records);
      writtenOnce = once;
    };
    const module = await Test.createTestingModule({
      providers: [
        DeletionsService,
        EmitterOwners,
        { provide: EmitterDirectory, useValue: directory },
        { provide: EventLog, useValue: { append } },
        { provide: SecretBox, useValue: box },
        { provide: AccountPace, useValue: { spend: (account: string, units: number) => spent.push({ account, units }) } },
      ],
    }).compile();
    deletions = module.get(DeletionsService);
  });

  it('are deleted by a record in their own log, which waits for no other service: events that are published meanwhile stay', async () => {
    await deletions.delete(ME, SOURCE, { start_id: '100-1', end_id: '100-2', event_name: '$errors' });
    expect(sent).toMatchObject([{ key: SOURCE, headers: { ce_sluicesignature: expect.stringContaining(':') } }]);
    expect(lookedUp).toEqual([]);
    expect(writtenOnce).toBe(true);
  });

  it.each([
    ['one event', { start_id: '100-1', end_id: '100-1' }, { start: place(1), end: place(1), stream: null }],
    ['everything', {}, { start: null, stream: null }],
    ['everything, with null for each end', { start_id: null, end_id: null, event_name: null }, { start: null, stream: null }],
    ['the events from one on', { start_id: '100-1', end_id: null }, { start: place(1), stream: null }],
    ['a stream until an event', { start_id: null, end_id: '100-2', event_name: 'mine' }, { start: null, end: place(2), stream: 'mine' }],
  ])('are deleted in a range of %s', async (_, range, deletion) => {
    await deletions.delete(ME, SOURCE, range);
    const reads = sent.map(({ headers, ...record }) =>
      readEventRecord(
        { ...record, partition: 0, offset: 9, clock: 200, header: (name) => headers[name], headerNames: () => Object.keys(headers) },
        { maxBytes: 1000, signer: box },
      ),
    );
    expect(reads).toMatchObject([{ kind: 'delete', ...deletion }]);
  });

  it.each([
    [{}, 10],
    [{ event_name: '*' }, 10],
    [{ event_name: 'mine' }, EVENT_UNITS],
  ])('are deleted by %j at a cost of %d units for the account', async (range, units) => {
    await deletions.delete(ME, SOURCE, range);
    expect(spent).toEqual([{ account: ME, units }]);
  });

  it.each([
    ['that does not exist', ME, 'dc_000000000000000002', false],
    ['of another account', 'u_000000000000000002', SOURCE, false],
    ['that is deleted', ME, SOURCE, true],
  ] as const)('are not deleted for a source %s', async (_, owner, id, isDeleted) => {
    source.deleted = isDeleted;
    await expect(deletions.delete(owner, id, {})).rejects.toMatchObject({ code: 'not_found', message: `source ${id} not found` });
    expect(sent).toEqual([]);
  });
});

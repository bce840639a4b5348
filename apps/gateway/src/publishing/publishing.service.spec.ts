import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Invalid, TooManyRequests } from '#contracts';
import { AccountPace, EVENT_UNITS } from '#fairness';
import { FullAccounts } from '#waiting-data';
import { GatewayConfig } from '../gateway.config.js';
import { EmitterOwners } from './emitter-owners.js';
import { EventLog } from './event-log.js';
import { PublishingService } from './publishing.service.js';

const append = jest.fn(() => Promise.resolve());
const refuseFull = jest.fn();
const spend = jest.fn<AccountPace['spend']>();
let service: PublishingService;

beforeEach(async () => {
  spend.mockClear();
  append.mockClear();
  refuseFull.mockReset();
  const module = await Test.createTestingModule({
    providers: [
      PublishingService,
      { provide: EmitterOwners, useValue: { emitterOf: (_owner: unknown, _kind: unknown, id: string) => Promise.resolve(id) } },
      { provide: EventLog, useValue: { append } },
      { provide: GatewayConfig, useValue: { maxEventBytes: 1024 * 1024 } },
      { provide: AccountPace, useValue: { spend } },
      { provide: FullAccounts, useValue: { refuseFull } },
    ],
  }).compile();
  service = module.get(PublishingService);
});

const publish = (body: string) =>
  service.publish('u_1', 'source', 'dc_1', {
    headers: { 'content-type': 'application/json' },
    rawHeaders: [],
    body: Buffer.from(body),
    query: {},
  });
const spent = () => spend.mock.calls.map(([account, units]) => ({ account, units }));

describe('the account of a request to publish', () => {
  it('spends a price per event and the time that reading the body takes', async () => {
    await publish('{"a":1}');
    expect(spent()).toEqual([
      { account: 'u_1', units: expect.any(Number) },
      { account: 'u_1', units: EVENT_UNITS },
    ]);
  });

  it('spends the time that reading the body takes also if it is refused', async () => {
    await expect(publish(`[${'[],'.repeat(300_000)}`)).rejects.toThrow(Invalid);
    expect(spent()).toEqual([{ account: 'u_1', units: expect.any(Number) }]);
    expect(spent()[0]?.units).toBeGreaterThan(0);
  });
});

it('refuses to publish for a full account, and publishes nothing', async () => {
  refuseFull.mockImplementation(() => {
    throw new TooManyRequests('full');
  });
  await expect(publish('{"a":1}')).rejects.toThrow('full');
  expect(refuseFull.mock.calls).toEqual([['u_1']]);
  expect(append).not.toHaveBeenCalled();
});

it('returns the emit ids of a request again without publishing', async () => {
  const request = { headers: { 'content-type': 'application/json' }, rawHeaders: [], body: Buffer.from('1'), query: { id: 'mine' } };
  expect(service.published('u_1', request)).toEqual([{ emit_id: 'mine' }]);
  expect(append).not.toHaveBeenCalled();
});

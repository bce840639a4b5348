import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { type OutgoingRecord, Publisher } from '#messaging';
import { RuntimeConfig } from '../runtime.config.js';
import { Quotas } from './quotas.js';
import { QuotasRepository } from './quotas.repository.js';

const LIMITED = { SLUICE_QUOTAS: 'free', SLUICE_DAILY_COMPUTE_MS: '1000', SLUICE_DAILY_INVOCATIONS: '10' };
const record = (key: string): OutgoingRecord => ({ topic: 'events', key, value: 'over quota' });

describe('the daily quota of an account', () => {
  let used: { compute_ms: number; invocations: number };
  let sent: OutgoingRecord[];
  let noticed: Set<string>;

  beforeEach(() => {
    used = { compute_ms: 0, invocations: 0 };
    sent = [];
    noticed = new Set();
  });

  const quotas = async (variables: Record<string, string> = LIMITED) => {
    const firstNoticeToday = async (sourceId: string) => !noticed.has(sourceId) && noticed.add(sourceId) !== undefined;
    const module = await Test.createTestingModule({
      providers: [
        Quotas,
        { provide: QuotasRepository, useValue: { usedToday: async () => used, firstNoticeToday } },
        { provide: RuntimeConfig, useValue: RuntimeConfig.read(variables) },
        { provide: Publisher, useValue: { send: async (records: OutgoingRecord[]) => void sent.push(...records) } },
      ],
    }).compile();
    return module.get(Quotas);
  };

  it.each([
    ['nothing is used', 0, 0, true],
    ['a little is left of both', 999, 9, true],
    ['the run time is used up', 1000, 0, false],
    ['the runs are used up', 0, 10, false],
    ['more than the quota is used', 5000, 50, false],
  ])('when %s', async (_, compute_ms, invocations, isAllowed) => {
    used = { compute_ms, invocations };
    expect(await (await quotas()).allow('u_1')).toBe(isAllowed);
  });

  it('is not checked if the operator has set none', async () => {
    used = { compute_ms: 1e9, invocations: 1e9 };
    const unlimited = await quotas({});
    expect({ counted: unlimited.counted, allowed: await unlimited.allow('u_1') }).toEqual({ counted: false, allowed: true });
    expect((await quotas()).counted).toBe(true);
  });

  it('is reported once a day for each source', async () => {
    const limited = await quotas();
    for (const source of ['dc_1', 'dc_1', 'dc_2'] as const) await limited.notify(source, record(source));
    expect(sent).toEqual([record('dc_1'), record('dc_2')]);
  });
});

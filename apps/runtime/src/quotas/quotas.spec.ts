import { beforeEach, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { RuntimeConfig } from '../runtime.config.js';
import { Quotas, secondsToReset } from './quotas.js';
import { QuotasRepository } from './quotas.repository.js';

const LIMITED = { SLUICE_QUOTAS: 'free', SLUICE_DAILY_COMPUTE_MS: '1000', SLUICE_DAILY_INVOCATIONS: '10' };

describe('the daily quota of an account', () => {
  let used: { compute_ms: number; invocations: number };
  let reads: number;

  beforeEach(() => {
    used = { compute_ms: 0, invocations: 0 };
    reads = 0;
  });

  const quotas = async (variables: Record<string, string> = LIMITED) => {
    const module = await Test.createTestingModule({
      providers: [
        Quotas,
        { provide: QuotasRepository, useValue: { usedToday: async () => (reads++, used) } },
        { provide: RuntimeConfig, useValue: RuntimeConfig.read(variables) },
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

  it('is read once for requests of an account that come together', async () => {
    const limited = await quotas();
    expect(await Promise.all([1, 2, 3].map(() => limited.allowRequest('u_1')))).toEqual([true, true, true]);
    used = { compute_ms: 0, invocations: 10 };
    expect([await limited.allowRequest('u_2'), reads]).toEqual([false, 2]);
  });

  it.each([
    ['2026-01-01T00:00:00.000Z', 86_400],
    ['2026-01-01T23:59:58.999Z', 2],
    ['2026-01-01T23:59:59.999Z', 1],
  ])('is reset at midnight: at %s in %i seconds', (now, seconds) => expect(secondsToReset(Date.parse(now))).toBe(seconds));

  it('is not checked if the operator has set none', async () => {
    used = { compute_ms: 1e9, invocations: 1e9 };
    const unlimited = await quotas({});
    expect({ counted: unlimited.counted, allowed: await unlimited.allow('u_1') }).toEqual({ counted: false, allowed: true });
    expect((await quotas()).counted).toBe(true);
  });
});

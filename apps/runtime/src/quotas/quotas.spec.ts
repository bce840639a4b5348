import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { RuntimeConfig } from '../runtime.config.js';
import { Quotas } from './quotas.js';
import { QuotasRepository } from './quotas.repository.js';

const LIMITED = { SLUICE_QUOTAS: 'free', SLUICE_DAILY_COMPUTE_MS: '1000', SLUICE_DAILY_INVOCATIONS: '10' };

describe('the daily quota of an account', () => {
  let used: { compute_ms: number; invocations: number };
  let waiting: number;
  let stored: string[];
  let failure: Error | undefined;
  let reads: number;

  beforeEach(() => {
    used = { compute_ms: 0, invocations: 0 };
    waiting = 0;
    stored = [];
    failure = undefined;
    reads = 0;
  });

  const usedAndWaiting = async () => {
    if (failure) throw failure;
    reads++;
    return { compute_ms: used.compute_ms, runs: used.invocations + waiting, stored: new Set(stored) };
  };

  const quotas = async (variables: Record<string, string> = LIMITED) => {
    const module = await Test.createTestingModule({
      providers: [
        Quotas,
        { provide: QuotasRepository, useValue: { usedToday: async () => used, usedAndWaiting } },
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
    expect(await Promise.all(['a', 'b', 'c'].map((run) => limited.admit('u_1', run)))).toEqual([true, true, true]);
    used = { compute_ms: 0, invocations: 10 };
    expect([await limited.admit('u_2', 'd'), reads]).toEqual([false, 2]);
  });

  it.each([
    ['some runs are left', 0, 8, 2],
    ['runs wait', 0, 8, 1, 1],
    ['the run time is used up', 1000, 0, 0],
  ])('admits no more requests than its runs can end: %s', async (_, compute_ms, invocations, admitted, inQueue = 0) => {
    used = { compute_ms, invocations };
    waiting = inQueue;
    const limited = await quotas();
    const verdicts = await Promise.all(['a', 'b', 'c'].map((run) => limited.admit('u_1', run)));
    expect(verdicts.filter(Boolean)).toHaveLength(admitted);
  });

  describe('a second later', () => {
    let now: number;
    beforeEach(() => {
      now = performance.now();
      jest.spyOn(performance, 'now').mockImplementation(() => now);
    });
    afterEach(() => void jest.restoreAllMocks());

    const pass = async (ms: number) => {
      now += ms;
      // the cache reads the clock once per millisecond
      await sleep(2);
    };

    it('counts each admitted run once: while it is on its way, while it waits, and when it has ended', async () => {
      used = { compute_ms: 0, invocations: 6 };
      const limited = await quotas();
      for (const run of ['ended', 'queued', 'on its way']) expect(await limited.admit('u_1', run)).toBe(true);
      await pass(1100);
      used = { compute_ms: 0, invocations: 7 };
      waiting = 1;
      stored = ['ended', 'queued'];
      expect([await limited.admit('u_1', 'tenth'), await limited.admit('u_1', 'eleventh')]).toEqual([true, false]);
    });

    it('remembers the admitted runs if the database cannot be read', async () => {
      used = { compute_ms: 0, invocations: 9 };
      const limited = await quotas();
      expect(await limited.admit('u_1', 'tenth')).toBe(true);
      await pass(1100);
      failure = new Error('down');
      await expect(limited.admit('u_1', 'eleventh')).rejects.toThrow('down');
      failure = undefined;
      expect(await limited.admit('u_1', 'eleventh')).toBe(false);
    });

    it('admits a repeated request for a run once', async () => {
      used = { compute_ms: 0, invocations: 9 };
      const limited = await quotas();
      expect([await limited.admit('u_1', 'tenth'), await limited.admit('u_1', 'tenth')]).toEqual([true, true]);
      expect(await limited.admit('u_1', 'eleventh')).toBe(false);
    });

    it('counts an admitted run for a quarter of an hour if it was dropped with its source', async () => {
      used = { compute_ms: 0, invocations: 9 };
      const limited = await quotas();
      expect(await limited.admit('u_1', 'dropped')).toBe(true);
      await pass(899_000);
      expect(await limited.admit('u_1', 'next')).toBe(false);
      await pass(2000);
      expect(await limited.admit('u_1', 'next')).toBe(true);
    });
  });

  it('is not checked if the operator has set none', async () => {
    used = { compute_ms: 1e9, invocations: 1e9 };
    const unlimited = await quotas({});
    expect({ counted: unlimited.counted, allowed: await unlimited.allow('u_1'), admitted: await unlimited.admit('u_1', 'r') }).toEqual({
      ...{ counted: false, allowed: true, admitted: true },
    });
    expect((await quotas()).counted).toBe(true);
  });
});

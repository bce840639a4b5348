import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { NotFound, type RunRequest, TimedOut } from '#contracts';
import { EmitterDirectory } from '#emitters';
import { AccountPace } from '#fairness';
import { Messages } from '#messaging';
import { createLog, LOG } from '#observability';
import { Stats } from '#stats';
import { CodeCache } from '../components/code-cache.js';
import type { DeploymentRow } from '../deployments/deployment.entity.js';
import { DeploymentsRepository } from '../deployments/deployments.repository.js';
import { Quotas } from '../quotas/quotas.js';
import { RuntimeConfig } from '../runtime.config.js';
import { SourceStateRepository } from '../source-state/source-state.repository.js';
import type { RunEffects } from './run-effects.js';
import { RunLanes } from './run-lanes.js';
import { RunResults } from './run-results.js';
import { RunSources } from './run-sources.js';
import { RunsRepository } from './runs.repository.js';
import { RunsService } from './runs.service.js';
import { SandboxRuns } from './sandbox-runs.js';
import { SourceLocks } from './source-locks.js';

const RUN: RunRequest = {
  ...{ run_id: 'r', source_id: 'dc_1', owner_id: 'u_1' },
  ...{ trigger: 'event', event: '{"n":1}', due_at_ms: 1 },
};
const DEPLOYED = { ...RUN, active: true, version: 1, code_hash: 'h', configured_props: {}, schedules: {}, kills_in_row: 0 };

const serviceWithCode = async (get: () => Promise<never>, stored: RunEffects[]) => {
  const finish = async (_: unknown, effects: RunEffects) => stored.push(effects) > 0;
  const module = await Test.createTestingModule({
    providers: [
      ...[RunsService, RunSources, RunResults],
      { provide: CodeCache, useValue: { get } },
      { provide: DeploymentsRepository, useValue: { find: async () => DEPLOYED as unknown as DeploymentRow } },
      { provide: RunsRepository, useValue: { isDone: async () => false, finish } },
      { provide: AccountPace, useValue: { runTurn: async () => {}, spend: () => {} } },
      { provide: Quotas, useValue: { counted: false } },
      { provide: Stats, useValue: { countEnded: () => {} } },
      { provide: RuntimeConfig, useValue: RuntimeConfig.read({}) },
      { provide: LOG, useValue: createLog('test', 'silent') },
      ...[EmitterDirectory, Messages, SourceStateRepository, RunLanes, SandboxRuns, SourceLocks].map((provide) => ({
        provide,
        useValue: {},
      })),
    ],
  }).compile();
  return module.get(RunsService);
};

it('fails a run whose code the catalog does not have, and reports it with the event', async () => {
  const stored: RunEffects[] = [];
  const service = await serviceWithCode(() => Promise.reject(new NotFound('code', 'h')), stored);
  expect(await service.execute(RUN)).toBe('threw');
  const [{ entry, records }] = stored as [RunEffects];
  expect(entry).toMatchObject({ status: 'failed', error: expect.stringContaining('CodeNotFound') });
  expect(JSON.parse(String(records[0]!.value))).toMatchObject({ error: { code: 'CodeNotFound' }, original_event: { n: 1 } });
});

it('leaves a run to be repeated while the catalog does not reply', async () => {
  const stored: RunEffects[] = [];
  const service = await serviceWithCode(() => Promise.reject(new TimedOut('catalog')), stored);
  await expect(service.execute(RUN)).rejects.toThrow(TimedOut);
  expect(stored).toEqual([]);
});

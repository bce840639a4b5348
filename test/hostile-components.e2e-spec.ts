import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { hostname } from 'node:os';
import { attackThroughApi, loadAttacks } from '../scripts/attack/through-api.mjs';
import type { Api } from './support/api.js';
import { joinSystem, type System } from './support/system.js';
import { needing, target } from './support/target.js';

// `npm run attack` makes all attacks. These end quickly with the usual limits of runs
const CHOSEN = [
  'files: reads the project',
  'files: replaces its socket',
  'other processes: reads their environment',
  'children and code: compiles code',
  'time: loops',
  'output: emits 100 MB',
  'throws: a proxy',
  'frames: bad shapes',
  'frames: a victim’s run',
  'prototypes: what it leaves in the process',
  'network: a port of the parent',
  'proxy: spellings of metadata and loopback',
  'loading: floods the parent in the name of its inspection',
  'loading: connects to the parent',
];

let system: System;
let [hostile, other, victim]: Api[] = [];

beforeAll(async () => {
  system = await joinSystem();
  [hostile, other, victim] = [await system.account(), await system.account(), await system.account()];
});
afterAll(() => system?.stop());

needing('accounts').describe('hostile components of an account', () => {
  it('reach nothing, and neither this account nor another one notices them afterwards', async () => {
    const { attacks } = await loadAttacks();
    const chosen = attacks.filter(({ group, name }) => CHOSEN.includes(`${group}: ${name}`));
    const port = Number(new URL(system.apiUrl).port);
    const { outcomes, others } = await attackThroughApi({
      apiUrl: system.apiUrl,
      hostileKeys: [hostile, other].map((api) => api!.account.api_key),
      victimKey: victim!.account.api_key,
      hasWebhook: target.kind === 'local',
      attacks: chosen,
      targets: {
        ...{ parentPid: 1, otherPid: process.pid, hostname: hostname(), projectFile: import.meta.filename },
        ...{ port: 1, storePort: port, publicStorePort: port, httpPort: 1, greeterPort: 1 },
        ...{ unixSocket: '/var/run/docker.sock', abstractSocket: 'none' },
      },
      runSeconds: 30,
    });
    expect(outcomes.filter(({ damage }) => damage.length > 0)).toEqual([]);
    // among them, that a planted breach was not noticed
    expect(others).toEqual([]);
    expect(outcomes).toHaveLength(CHOSEN.length);
    expect(outcomes.filter(({ status }) => status !== undefined).length).toBeGreaterThanOrEqual(CHOSEN.length - 1);
  });
});

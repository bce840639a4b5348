import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { NAME_LENGTH, SOURCE_NAME_LENGTH } from '#contracts';
import { MAX_TIMERS } from '#schedules';
import { RUNS_PER_ACCOUNT } from '../runs/runs.controller.js';
import { RuntimeConfig } from '../runtime.config.js';
import { curatedModules } from './curated-modules.js';
import { defaultEgressLimits } from './egress/egress-budget.js';
import { closedBuiltIns } from './guest/built-ins.js';
import { tmpBytes } from './jail/command-line.js';
import { defaultInstallLimits } from './packages/install-limits.js';
import { defaultLimits, defaultSandboxConfig } from './sandbox-config.js';
import { readSandboxConfig } from './sandbox.provider.js';
import { descriptionLimits } from './wire/description-limits.js';
import { longestDbKey } from './wire/names.js';

const page = readFileSync(new URL('../../../../docs/reference/components.md', import.meta.url), 'utf8');

/** The cells of each row of a section's table, by the first one. */
const rows = new Map(
  [...page.matchAll(/^\| +(.+?) +\| (.+) \|$/gm)].map(([, name = '', rest = '']) => [name.trim(), rest.replace(/ +/g, ' ').trim()]),
);
const MiB = 1 << 20;

describe('docs/reference/components.md', () => {
  const {
    wallMs,
    cpuMs,
    silenceCpuMs,
    memoryMb,
    heapMb,
    emits,
    emittedBytes,
    eventBytes,
    eventDepth,
    logs,
    logBytes,
    dbBytes,
    dbKeys,
    respondBytes,
  } = defaultLimits;
  const { connections, perMinute, bytesDown, bytesUp, lifeMs, idleMs } = defaultEgressLimits;

  it.each([
    ['time of a run', `${wallMs / 1000} s, of which ${cpuMs / 1000} s CPU time, at most ${silenceCpuMs / 1000} s of it`],
    ['memory', `${memoryMb} MB for the process, ${heapMb} MB for JavaScript objects`],
    ['temporary files', `${tmpBytes / MiB} MB in \`/tmp\`, ${defaultLimits.temporaryFiles} files and folders`],
    [
      'runs of an account at a time',
      `${RUNS_PER_ACCOUNT} in each replica; half of \`SLUICE_RUNS_AT_ONCE\` (${RuntimeConfig.read({}).concurrency / 2}) while`,
    ],
    ['emits', `${emits} per run, together at most ${emittedBytes / MiB} MiB`],
    ['an event', `${eventBytes / MiB} MiB of JSON`],
    ['an event', `nested ${eventDepth} levels deep`],
    ['log lines', `${logs} per run, ${logBytes / 1024} KiB of JSON each`],
    ['`this.db`', `${dbBytes / MiB} MiB, ${dbKeys} keys of at most ${longestDbKey} bytes; a run changes at most ${dbKeys} keys`],
    ['response of `respond`', `${respondBytes / MiB} MiB`],
    [
      'description of a component',
      `${descriptionLimits.props} props, together 262144 characters of JSON; \`name\` and \`version\` ${SOURCE_NAME_LENGTH} characters each, \`key\` ${NAME_LENGTH}, \`description\` and types ${descriptionLimits.text}; ${defaultInstallLimits.named} imported packages that are not part of Sluice, ${defaultInstallLimits.packages} with their dependencies`,
    ],
    ['timers of a source', `${MAX_TIMERS}, with those that have a default`],
    ['body of a request to an endpoint', `${RuntimeConfig.read({}).maxEndpointBodyBytes / 1024} KiB`],
    ['connections of an account', `${connections} at a time, ${perMinute} per minute`],
    [
      'one connection',
      `${bytesDown / MiB} MiB received, ${bytesUp / MiB} MiB sent, ${lifeMs / 60_000} minutes; ${idleMs / 1000} s without a byte`,
    ],
  ])('states the limit of %s: %s', (name, limit) => expect(rows.get(name)).toContain(limit));

  it('states the limits of the bundled packages', () => {
    const { bundleBytes, storedBytes } = defaultInstallLimits;
    expect(page).toContain(`at most ${bundleBytes / MiB} MB, ${storedBytes / MiB} MB when they are compressed`);
  });

  it('states after how much work a process is replaced', () => {
    const { idleMs, maxAgeMs, maxRuns, maxModules, maxCodeLength } = defaultSandboxConfig;
    expect(idleMs).toBe(60_000);
    expect(page).toContain(`a minute after the last run, or ${maxAgeMs / 60_000} minutes after its start`);
    expect(page).toContain(
      `after ${maxRuns} runs, or runs of ${maxModules} sources, or of sources that have ${maxCodeLength / MiB} MiB of code`,
    );
  });

  it('states the limits without a configuration', () => expect(readSandboxConfig().limits).toEqual(defaultLimits));

  it('names packages that are part of Sluice, and modules that are closed', () => {
    const [, packages = ''] = /^- Part of Sluice, and there at once: (.*?) and some more/ms.exec(page) ?? [];
    const [, closed = ''] = /^- Modules of Node, except (.*?)\.$/ms.exec(page) ?? [];
    const names = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect(names(packages).length).toBeGreaterThan(5);
    expect(curatedModules).toEqual(expect.arrayContaining(names(packages)));
    // without the internal ones, and without parts such as `readline/promises`
    const modules = closedBuiltIns.filter((name) => !/^_|\//.test(name));
    expect(names(closed).sort()).toEqual(modules.sort());
  });
});

it('docs/security.md states what a source stores in `this.db`', () => {
  const security = readFileSync(new URL('../../../../docs/security.md', import.meta.url), 'utf8');
  const keys = defaultLimits.dbKeys.toString().replace(/(?=000$)/, ' ');
  expect(security).toContain(`per source: ${defaultLimits.dbBytes / MiB} MiB in at most ${keys} rows`);
});

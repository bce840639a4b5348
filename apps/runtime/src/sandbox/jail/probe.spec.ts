import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { curatedModules } from '../curated-modules.js';
import { jailOf } from './choose-jail.js';
import type { Rung } from './jail.js';
import { buildJailRoot, type JailRoot } from './jail-root.js';
import { runInJail } from './run-in-jail.js';
import { RunnerUsers } from './runner-users.js';

// A process that exists in every PID namespace, also in one that has only the probe
const init = '1';
const closedPort = '1';

describe('the probe', () => {
  let root: JailRoot;
  let exchangeDir: string;
  beforeAll(async () => {
    root = await buildJailRoot(join(tmpdir(), `sluice-test-${process.getuid?.() ?? ''}`, 'sandbox'), curatedModules);
    exchangeDir = await mkdtemp(join(tmpdir(), 'sluice-probe-test-'));
  });
  afterAll(() => rm(exchangeDir, { recursive: true, force: true }));

  const probe = (rung: Rung, parent: string) =>
    runInJail(
      jailOf(rung, root),
      { kind: 'probe', exchangeDir, uid: new RunnerUsers().next(), heapMb: 64, args: [closedPort, '/nonexistent', parent] },
      { wallMs: 60_000 },
      65_536,
    );

  it('reports that it can signal its parent where there is no jail', async () => {
    expect((await probe('none', String(process.pid))).output).toContain('"signals"');
  });

  it.each<Rung>(['bwrap', 'unshare'])('does not take a process of its own PID namespace for the parent in %s', async (rung) => {
    const { exit, output, errors } = await probe(rung, init);
    if (exit !== '0') return void process.stderr.write(`\nNOT TESTED: ${rung}: ${errors}\n`);
    expect(JSON.parse(output)).toEqual({ reached: [] });
  });
});

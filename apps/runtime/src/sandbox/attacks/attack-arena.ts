import { readdirSync, readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { OwnHosts } from '#egress';
import { startMockInternet, type MockInternet } from '../egress/mock-internet-for-tests.js';
import type { JailChoice } from '../jail/choose-jail.js';
import type { Rung } from '../jail/jail.js';
import { processFields } from '../jail/process-usage.js';
import type { ProcessSandbox } from '../process-sandbox.js';
import { componentOf, jobOf, startTestSandbox } from '../sandbox-for-tests.js';
import type { RunOutcome } from '../sandbox.js';
import { attackCode, loadingCode } from './attack-code.js';
import { attacks, forbiddenOn, type Attack, type Targets } from './attacks.js';
import { setBait, type Bait } from './bait.js';

export interface AttackResult {
  attack: Attack;
  breaches: string[];
  /** The outcome of the hostile account's next, harmless run */
  next: RunOutcome;
}

export interface ArenaResult {
  /** The rung that was attacked */
  jail: Rung;
  results: AttackResult[];
  victim: { runs: number; failures: RunOutcome[]; slowestMs: number };
  /** The connections and signals that reached the parent or its servers: there must be none */
  reached: string[];
  /** Processes of runner users that remain after everything was closed */
  leftovers: string[];
}

const atATime = 4;
const attackMs = 1800;
const nextMs = 20_000;
const victimEveryMs = 25;
const victimCode =
  'export default { name: "v", props: { db: "$.service.db" }, async run() { const n = (this.db.get("n") ?? 0) + 1; this.db.set("n", n); this.$emit({ n }) } }';

/** Runs every attack in a jail, a few at a time, each in a separate account, beside a victim whose runs must all succeed. */
export async function runArena(jail: JailChoice): Promise<ArenaResult> {
  process.env.SECRET = 'the secret of the parent';
  const internet = await startMockInternet();
  const bait = await setBait();
  const sandbox = await startTestSandbox({
    jail,
    blanks: 1,
    hardened: false,
    maxProcesses: 12,
    // An operator that allows every host, with stores on this machine
    allowPrivateHosts: `${internet.allowed},127.0.0.0/8:${bait.storePort},127.0.0.0/8:${bait.publicStorePort},[::1]:${bait.storePort},store.test`,
    ownHosts: OwnHosts.fromEnvironment({
      KAFKA_BROKERS: `127.0.0.1:${bait.storePort}`,
      SLUICE_PROTECTED_HOSTS: `127.0.0.1:${bait.publicStorePort}`,
    }),
    lookup: internet.lookup,
    limits: { cpuMs: 800, silenceCpuMs: 450, outputPieces: 200, errorPieces: 200 },
  });
  try {
    const targets = targetsOf(internet, bait);
    const victim = keepVictim(sandbox);
    const results = await inLanes(attacks, atATime, (attack, index) => attackOnce(sandbox, attack, `u_hostile_${index}`, targets));
    const jail = sandbox.health().jail as Rung;
    return {
      jail,
      results,
      victim: await victim.stop(),
      reached: bait.reached(internet),
      leftovers: await closeAndLookForLeftovers(sandbox),
    };
  } finally {
    await sandbox.close();
    internet.close();
    bait.remove();
    delete process.env.SECRET;
  }
}

/** The things that an attack reached or damaged; empty: it was contained. */
export function damageOf({ attack, breaches, next }: AttackResult): string[] {
  const works = next.status === 'ok' && next.emits.length === 1 && next.emits[0]!.event === '{"n":2}';
  return [...breaches, ...(works || attack.spoilsItself ? [] : [`the next run of its account: ${JSON.stringify(next).slice(0, 300)}`])];
}

/** The things that all attacks together reached or damaged. */
export function damageToOthers({ jail, victim, reached, leftovers }: ArenaResult): string[] {
  return [
    ...victim.failures.map((failure) => `a run of another account: ${JSON.stringify(failure).slice(0, 300)}`),
    ...forbiddenOn(jail, reached),
    ...leftovers.map((process) => `a process that is left: ${process}`),
  ];
}

async function attackOnce(sandbox: ProcessSandbox, attack: Attack, accountId: string, targets: Targets): Promise<AttackResult> {
  const breaches = attack.whileLoading
    ? await load(sandbox, loadingCode(attack, targets), accountId)
    : await run(sandbox, attackCode(attack), accountId, targets);
  // Code that it left running gets a turn
  await new Promise((resolve) => setTimeout(resolve, 100));
  const next = await sandbox.run(jobOf(victimCode, { accountId, db: { n: '1' }, wallMs: nextMs }));
  if (isSpoofed(next)) breaches.push('it ended another run');
  return { attack, breaches, next };
}

async function run(sandbox: ProcessSandbox, code: string, accountId: string, targets: Targets): Promise<string[]> {
  const outcome = await sandbox.run(jobOf(code, { accountId, event: JSON.stringify(targets), wallMs: attackMs }));
  const breaches = outcome.emits.map(({ event }) => event).filter((event) => event.startsWith('"BREACH'));
  return isSpoofed(outcome) ? [...breaches, 'it ended another run'] : breaches;
}

/** Inspects the component, and runs it if it is accepted. */
async function load(sandbox: ProcessSandbox, code: string, accountId: string): Promise<string[]> {
  const until = Date.now() + 3 * attackMs;
  const refusal = await sandbox.inspect(componentOf(code), { accountId, until, installs: true }).then(
    () => '',
    (error: Error) => error.message,
  );
  const { error } = await sandbox.run(jobOf(code, { accountId, wallMs: attackMs }));
  return [refusal, error?.message ?? ''].filter((message) => message.includes('BREACH'));
}

const isSpoofed = ({ error }: RunOutcome): boolean => error?.name === 'SPOOF';

function keepVictim(sandbox: ProcessSandbox): { stop(): Promise<ArenaResult['victim']> } {
  const seen: ArenaResult['victim'] = { runs: 0, failures: [], slowestMs: 0 };
  let going = true;
  const loop = (async () => {
    while (going) {
      const startedAt = performance.now();
      const outcome = await sandbox.run(jobOf(victimCode, { accountId: 'u_victim', db: { n: '1' } }));
      seen.runs++;
      seen.slowestMs = Math.max(seen.slowestMs, performance.now() - startedAt);
      if (outcome.status !== 'ok' || outcome.emits.length !== 1 || outcome.emits[0]!.event !== '{"n":2}' || outcome.db.n !== '2')
        seen.failures.push(outcome);
      await new Promise((resolve) => setTimeout(resolve, victimEveryMs));
    }
  })();
  return {
    stop: async () => {
      going = false;
      await loop;
      return seen;
    },
  };
}

function targetsOf(internet: MockInternet, bait: Bait): Targets {
  const { port, storePort, publicStorePort, unixSocket, abstractSocket } = bait;
  return {
    parentPid: process.pid,
    otherPid: process.ppid,
    port,
    storePort,
    publicStorePort,
    unixSocket,
    abstractSocket,
    httpPort: internet.http,
    greeterPort: internet.greeter,
    hostname: hostname(),
    projectFile: import.meta.filename,
  };
}

async function closeAndLookForLeftovers(sandbox: ProcessSandbox): Promise<string[]> {
  await sandbox.close();
  let found = processesOf(sandbox);
  for (let i = 0; i < 30 && found.length > 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    found = processesOf(sandbox);
  }
  return found;
}

/**
 * Runners have separate users only if we are root. Then the user identifies every process that a runner started, apart from those of another sandbox on
 * this machine, which may have begun at a similar id: their first ancestor with such a user is a child of its owner.
 */
function processesOf(sandbox: ProcessSandbox): string[] {
  const pids = readdirSync('/proc').filter((name) => Number(name) > 0);
  return pids.flatMap((pid) => {
    try {
      const { isZombie, parent } = statusOf(pid);
      if (isZombie || !isRunner(sandbox, pid)) return [];
      let ancestor = parent;
      while (isRunner(sandbox, ancestor)) ancestor = statusOf(ancestor).parent;
      // what a runner left behind was adopted
      if (![String(process.pid), '1'].includes(ancestor)) return [];
      return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')}`];
    } catch {
      return [];
    }
  });
}

const isRunner = (sandbox: ProcessSandbox, pid: string): boolean => sandbox.ownsUser(statSync(`/proc/${pid}`).uid);

function statusOf(pid: string): { isZombie: boolean; parent: string } {
  const [state, parent] = processFields(pid)!;
  return { isZombie: state === 'Z', parent: parent! };
}

async function inLanes<T, R>(items: T[], lanes: number, work: (item: T, index: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]!, index);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return results;
}

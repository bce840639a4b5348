import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { metrics } from '#observability';
import { retired } from './runner-end.js';
import { FakeRunnerProcess } from './fake-runner-process-for-tests.js';
import { RunnerPool, type PoolSettings, type Purpose } from './runner-pool.js';
import { componentOf, jobOf } from '../sandbox-for-tests.js';

const settings: PoolSettings = {
  blanks: 0,
  maxProcesses: 10,
  maxStarting: 2,
  runsPerProcess: 2,
  idleMs: 5000,
  maxRuns: 100,
  maxModules: 100,
  maxCodeLength: 1000,
  maxAgeMs: 1_000_000,
  doubtfulAgeMs: 60_000,
  outdatedAgeMs: 10_000,
  memoryMb: 256,
  heldOutputBytes: 256 << 20,
  freeMb: () => Infinity,
};

/** The code that a process has run. */
const hashOf = ({ modules }: FakeRunnerProcess): string | undefined => [...modules][0]?.split(' ')[0];

describe('the pool of runner processes', () => {
  let started: FakeRunnerProcess[];
  let purposes: Purpose[];
  let pool: RunnerPool<FakeRunnerProcess>;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['queueMicrotask', 'nextTick'] });
    started = [];
    purposes = [];
  });
  afterEach(async () => {
    await pool.close();
    jest.useRealTimers();
  });

  const open = (changes: Partial<PoolSettings> = {}) => {
    pool = new RunnerPool(
      async (purpose) => {
        purposes.push(purpose);
        const process = new FakeRunnerProcess();
        started.push(process);
        return process;
      },
      { ...settings, ...changes },
    );
    return pool;
  };
  /** Lets everything happen that needs no time. */
  const settle = () => jest.advanceTimersByTimeAsync(0);
  const run = (tenant: string, code = 'c') => pool.run(tenant, jobOf(code, { accountId: tenant.split('/')[0]! }));
  const runToEnd = async (tenant: string, code = 'c') => {
    const attempt = run(tenant, code);
    await settle();
    for (const process of started) process.finishRun();
    await attempt;
  };
  const alive = () => started.map((process) => process.alive);

  it('gives a tenant one process and keeps it', async () => {
    open();
    await runToEnd('a');
    await runToEnd('a');
    await runToEnd('b');
    expect(started.map(({ runs }) => runs)).toEqual([2, 1]);
  });

  it('remembers for a minute that the process of a tenant was computing when it ended', async () => {
    open();
    const next = async (tenant: string) => {
      await runToEnd(tenant);
      return started.at(-1)!;
    };
    const computing = await next('a');
    computing.isHeavy = true;
    computing.stop(retired);
    const replacement = await next('a');
    expect([replacement.isHeavy, (await next('b')).isHeavy]).toEqual([true, false]);
    replacement.isHeavy = false;
    replacement.stop(retired);
    await jest.advanceTimersByTimeAsync(62_000);
    expect((await next('a')).isHeavy).toBe(false);
  });

  it('starts one process for runs that come together', async () => {
    open();
    const attempts = [run('a'), run('a')];
    await settle();
    expect(started).toHaveLength(1);
    started[0]!.finishRun();
    started[0]!.finishRun();
    await Promise.all(attempts);
  });

  it('lets runs over the limit of a process wait', async () => {
    open();
    const attempts = [run('a'), run('a'), run('a')];
    await settle();
    expect({ inside: started[0]!.running, running: pool.running, waiting: pool.waiting }).toEqual({ inside: 2, running: 2, waiting: 1 });
    started[0]!.finishRun();
    await settle();
    expect({ inside: started[0]!.running, waiting: pool.waiting }).toEqual({ inside: 2, waiting: 0 });
    started[0]!.finishRun();
    started[0]!.finishRun();
    await Promise.all(attempts);
  });

  it('takes a blank process first and replaces it', async () => {
    await open({ blanks: 1 }).fill(1);
    expect(purposes).toEqual(['to wait']);
    await runToEnd('a');
    expect(started[0]!.runs).toBe(1);
    await jest.advanceTimersByTimeAsync(100);
    expect(purposes).toEqual(['to wait', 'to wait']);
  });

  it('keeps all blank processes ready for a minute after one was needed, one for an hour after a run, and none otherwise', async () => {
    const blanks = () => started.filter(({ alive, runs }) => alive && runs === 0).length;
    await open({ blanks: 2 }).fill(1);
    expect(blanks()).toBe(1);
    await jest.advanceTimersByTimeAsync(2000);
    expect(blanks()).toBe(0);
    await pool.alone('', () => Promise.resolve());
    await jest.advanceTimersByTimeAsync(2000);
    expect(blanks()).toBe(2);
    await jest.advanceTimersByTimeAsync(62_000);
    expect(blanks()).toBe(0);
    await runToEnd('a');
    await jest.advanceTimersByTimeAsync(2000);
    expect(blanks()).toBe(2);
    await jest.advanceTimersByTimeAsync(62_000);
    expect(blanks()).toBe(1);
    await jest.advanceTimersByTimeAsync(3_900_000);
    expect(blanks()).toBe(0);
  });

  it('never gives a process to a second tenant', async () => {
    await open({ blanks: 1 }).fill(1);
    await runToEnd('a');
    await runToEnd('b');
    expect(started.filter(({ runs }) => runs > 0).map(({ runs }) => runs)).toEqual([1, 1]);
  });

  it.each<[string, Partial<PoolSettings>, string[]]>([
    ['its maximum number of runs', { maxRuns: 2 }, ['c', 'c']],
    ['its maximum number of modules', { maxModules: 2 }, ['c', 'd']],
  ])('replaces a process after %s', async (_, changes, codes) => {
    open(changes);
    for (const code of codes) await runToEnd('a', code);
    expect(alive()).toEqual([false]);
    await runToEnd('a');
    expect(alive()).toEqual([false, true]);
  });

  it('replaces a process that has loaded much code', async () => {
    open();
    await runToEnd('a');
    expect(alive()).toEqual([true]);
    started[0]!.codeLength = settings.maxCodeLength;
    await runToEnd('a');
    expect(alive()).toEqual([false]);
  });

  it('replaces a process that has become old', async () => {
    open();
    await runToEnd('a');
    expect(alive()).toEqual([true]);
    started[0]!.startedAt -= settings.maxAgeMs;
    await runToEnd('a');
    expect(alive()).toEqual([false]);
  });

  it('replaces a process that has become doubtful, because its last three runs have failed and it is not new', async () => {
    open();
    await runToEnd('a');
    started[0]!.failedInRow = 3;
    await runToEnd('a');
    expect(alive()).toEqual([true]);
    started[0]!.startedAt -= 60_000;
    started[0]!.failedInRow = 2;
    await runToEnd('a');
    expect(alive()).toEqual([true]);
    started[0]!.failedInRow = 3;
    await runToEnd('a');
    expect(alive()).toEqual([false]);
  });

  it('ends the process that has run a source which is forgotten, after its runs in progress', async () => {
    open({ outdatedAgeMs: 0 });
    const first = run('a');
    await settle();
    pool.forget('a', 'dc_other');
    pool.forget('b', 'dc_test');
    expect(started.map(({ retiring }) => retiring)).toEqual([false]);
    pool.forget('a', 'dc_test');
    expect([started[0]!.retiring, started[0]!.alive]).toEqual([true, true]);
    started[0]!.finishRun();
    await first;
    expect(alive()).toEqual([false]);
  });

  it('ends the process that has run the hook deactivate of a source, which is requested by its change', async () => {
    open({ outdatedAgeMs: 0 });
    const run = pool.run('a', jobOf('c', { accountId: 'a', method: 'deactivate' }));
    await settle();
    started[0]!.finishRun();
    await run;
    expect(alive()).toEqual([false]);
  });

  it('ends a process of forgotten sources when the tenant has had it for some time, so that many changes cost few processes', async () => {
    open({ idleMs: 60_000 });
    await runToEnd('a');
    for (let second = 0; second < 9; second++) {
      await runToEnd('a');
      pool.forget('a', 'dc_test');
      await jest.advanceTimersByTimeAsync(1000);
    }
    expect(alive()).toEqual([true]);
    await jest.advanceTimersByTimeAsync(2000);
    expect(alive()).toEqual([false]);
    // the next one has run nothing that was forgotten
    await runToEnd('a');
    await jest.advanceTimersByTimeAsync(20_000);
    expect(alive()).toEqual([false, true]);
    pool.forget('a', 'dc_test');
    expect(alive()).toEqual([false, false]);
  });

  it('starts a new process beside one that is being retired, whose runs continue', async () => {
    open();
    const first = run('a');
    await settle();
    started[0]!.retire();
    const second = run('a');
    await settle();
    expect(started.map(({ running }) => running)).toEqual([1, 1]);
    started[0]!.finishRun();
    started[1]!.finishRun();
    await Promise.all([first, second]);
    expect(alive()).toEqual([false, true]);
  });

  it('replaces a process that died', async () => {
    open();
    await runToEnd('a');
    started[0]!.stop({ status: 'crashed', code: 'CRASHED', message: '' });
    await runToEnd('a');
    expect(alive()).toEqual([false, true]);
  });

  it('ends processes that idle, and not those that run', async () => {
    open();
    await runToEnd('a');
    const long = run('b');
    await settle();
    await jest.advanceTimersByTimeAsync(settings.idleMs + 2000);
    expect(alive()).toEqual([false, true]);
    started[1]!.finishRun();
    await long;
  });

  it('ends the process that has idled longest when the limit is reached', async () => {
    open({ maxProcesses: 2 });
    for (const tenant of ['a', 'b', 'a']) {
      await runToEnd(tenant);
      await jest.advanceTimersByTimeAsync(10);
    }
    await runToEnd('c');
    expect(alive()).toEqual([true, false, true]);
  });

  it('waits when every process is running', async () => {
    open({ maxProcesses: 1 });
    const first = run('a');
    await settle();
    const second = run('b');
    await settle();
    expect(started).toHaveLength(1);
    started[0]!.finishRun();
    await first;
    await jest.advanceTimersByTimeAsync(2000);
    expect(alive()).toEqual([false, true]);
    started[1]!.finishRun();
    await second;
  });

  it('limits the runs in a process, even if a component sets a higher concurrency', async () => {
    open();
    const attempts = Array.from({ length: 40 }, () => pool.run('a', jobOf('c', { concurrency: Number.MAX_SAFE_INTEGER })));
    await settle();
    expect({ inside: started[0]!.running, waiting: pool.waiting }).toEqual({ inside: 32, waiting: 8 });
    for (let i = 0; i < 40; i++) {
      started[0]!.finishRun();
      await settle();
    }
    await Promise.all(attempts);
  });

  it('does not take the process away from work that has just got it', async () => {
    open({ maxProcesses: 1 });
    let ended = false;
    const inspection = pool.alone('b', async (process) => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      ended = !process.alive;
    });
    await settle();
    const other = run('a');
    await jest.advanceTimersByTimeAsync(100);
    await inspection;
    expect(ended).toBe(false);
    await settle();
    started[1]!.finishRun();
    await other;
  });

  it('starts nothing for callers that still wait for a free process when it is closed', async () => {
    open({ maxProcesses: 1 });
    void run('a');
    await settle();
    const waiting = run('b');
    await settle();
    await pool.close();
    await expect(waiting).rejects.toMatchObject({ name: 'SandboxUnavailable' });
    expect(started).toHaveLength(1);
  });

  it('leaves no process that was being launched when it was closed', async () => {
    const launch = Promise.withResolvers<FakeRunnerProcess>();
    pool = new RunnerPool(() => launch.promise, settings);
    const waiting = run('a');
    waiting.catch(() => {});
    await settle();
    let isClosed = false;
    const closing = pool.close().then(() => (isClosed = true));
    await settle();
    expect(isClosed).toBe(false);
    const process = new FakeRunnerProcess();
    launch.resolve(process);
    await closing;
    expect(process.alive).toBe(false);
    expect(pool.processes).toBe(0);
  });

  it('starts processes of accounts in turns, and at most two of an account at a time', async () => {
    const launches: PromiseWithResolvers<FakeRunnerProcess>[] = [];
    const launch = (): Promise<FakeRunnerProcess> => {
      launches.push(Promise.withResolvers());
      return launches.at(-1)!.promise;
    };
    pool = new RunnerPool(launch, { ...settings, maxStarting: 3 });
    const tenants = ['a/1', 'a/2', 'a/3', 'a/4', 'b/1', 'b/2', 'c/1'];
    const attempts = tenants.map((tenant) => run(tenant, tenant));
    await settle();
    expect(launches).toHaveLength(3);
    const begun: string[] = [];
    for (const { resolve } of launches) {
      const process = new FakeRunnerProcess();
      resolve(process);
      await settle();
      begun.push(tenants.find((tenant) => hashOf(process) === componentOf(tenant).hash)!);
      process.finishRun();
    }
    await Promise.all(attempts);
    expect(begun).toEqual(['a/1', 'a/2', 'b/1', 'a/3', 'b/2', 'c/1', 'a/4']);
  });

  it('lets another account start a process before those for which one account has waited longer', async () => {
    open({ maxProcesses: 1 });
    const attempts = ['a/1', 'a/2', 'a/3', 'a/4', 'b/1'].map((tenant) => run(tenant, tenant));
    await settle();
    for (let n = 0; n < attempts.length; n++) {
      started.at(-1)!.finishRun();
      await jest.advanceTimersByTimeAsync(2000);
    }
    await Promise.all(attempts);
    const order = started.map(hashOf);
    expect(order.indexOf(componentOf('b/1').hash)).toBeLessThan(order.indexOf(componentOf('a/4').hash));
  });

  it('gives work that must be alone a process that ends with it', async () => {
    open();
    expect(await pool.alone('a', async (process) => process.runs)).toBe(0);
    expect(alive()).toEqual([false]);
  });

  it('reports and counts that no process can be started, and retries the next time', async () => {
    const failures = async () => /^sluice_sandbox_start_failures_total (\d+)/m.exec(await metrics.metrics())?.[1];
    const before = Number(await failures());
    let broken = true;
    pool = new RunnerPool(async () => {
      if (broken) throw new Error('no more processes');
      started.push(new FakeRunnerProcess());
      return started.at(-1)!;
    }, settings);
    await expect(run('a')).rejects.toMatchObject({ name: 'SandboxUnavailable', message: 'no more processes' });
    expect(Number(await failures())).toBe(before + 1);
    broken = false;
    await runToEnd('a');
    expect(started[0]!.runs).toBe(1);
  });

  describe('while little memory is left', () => {
    let freeMb: number;
    const openWith = (free: number, changes: Partial<PoolSettings> = {}) => {
      freeMb = free;
      return open({ freeMb: () => freeMb, ...changes });
    };

    it('starts one process, and another one when there is enough memory for it', async () => {
      openWith(100);
      void run('a');
      await settle();
      void run('b');
      await jest.advanceTimersByTimeAsync(60);
      expect(started).toHaveLength(1);
      freeMb = 256;
      await jest.advanceTimersByTimeAsync(100);
      expect(started).toHaveLength(2);
    });

    it('ends idle processes, so that others can start', async () => {
      openWith(1000);
      await runToEnd('a');
      freeMb = 200;
      void run('b');
      await settle();
      expect(alive()).toEqual([false]);
      freeMb = 300;
      await jest.advanceTimersByTimeAsync(100);
      expect(alive()).toEqual([false, true]);
    });

    it('ends the processes that are ready for accounts without one', async () => {
      openWith(1000, { blanks: 2 });
      await pool.fill(2);
      await jest.advanceTimersByTimeAsync(5000);
      expect(alive()).toEqual([false, false]);
    });

    it('keeps a process that is the only one', async () => {
      openWith(100);
      void run('a');
      await jest.advanceTimersByTimeAsync(5000);
      expect(alive()).toEqual([true]);
    });

    it('starts another program when there is enough memory for it, or when its caller stops waiting', async () => {
      openWith(100);
      void run('a');
      await settle();
      const began: string[] = [];
      const program = (name: string, until: number) => pool.withMemory(until, async () => began.push(name));
      const programs = [program('patient', Date.now() + 60_000), program('hasty', Date.now() + 1000)];
      await jest.advanceTimersByTimeAsync(900);
      expect(began).toEqual([]);
      await jest.advanceTimersByTimeAsync(200);
      expect(began).toEqual(['hasty']);
      freeMb = 256;
      await jest.advanceTimersByTimeAsync(100);
      expect(began).toEqual(['hasty', 'patient']);
      await Promise.all(programs);
    });

    it('ends the newest other program before a process of components', async () => {
      openWith(1000);
      const outcomes = ['first', 'second'].map((name) =>
        pool
          .withMemory(Infinity, async (signal) => {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            return name;
          })
          .catch((error: Error) => `${name}: ${error.name}`),
      );
      void run('a');
      void run('b');
      await jest.advanceTimersByTimeAsync(1000);
      freeMb = 127;
      await jest.advanceTimersByTimeAsync(100);
      expect(await outcomes[1]).toBe('second: SandboxUnavailable');
      expect(alive()).toEqual([true, true]);
      await jest.advanceTimersByTimeAsync(100);
      expect(await outcomes[0]).toBe('first: SandboxUnavailable');
      expect(alive()).toEqual([true, true]);
      await jest.advanceTimersByTimeAsync(100);
      expect(alive().filter(Boolean)).toHaveLength(1);
    });

    it('keeps another program that is the only one', async () => {
      openWith(100);
      let signal!: AbortSignal;
      const { promise, resolve } = Promise.withResolvers<void>();
      const done = pool.withMemory(Infinity, (given) => ((signal = given), promise));
      await jest.advanceTimersByTimeAsync(5000);
      expect(signal.aborted).toBe(false);
      resolve();
      await done;
    });

    it('ends the process that uses the most, if none is idle', async () => {
      openWith(1000);
      for (const tenant of ['a', 'b', 'c']) void run(tenant);
      await settle();
      started[1]!.rssMb = 200;
      await jest.advanceTimersByTimeAsync(1000);
      freeMb = 127;
      await jest.advanceTimersByTimeAsync(100);
      freeMb = 300;
      await jest.advanceTimersByTimeAsync(1000);
      expect(started.map(({ end }) => end?.message)).toEqual([
        undefined,
        'Sluice was short of memory, and the code used the most (200 MB)',
        undefined,
      ]);
    });
  });

  it('ends the processes whose runs have written the most, until the output of the others is within the limit', async () => {
    open({ heldOutputBytes: 5 << 20 });
    for (const tenant of ['a', 'b', 'c', 'd']) void run(tenant);
    await settle();
    [2, 4, 3, 1].forEach((mb, n) => (started[n]!.outputBytes = mb << 20));
    await jest.advanceTimersByTimeAsync(1000);
    expect(started.map(({ end }) => end?.message)).toEqual([
      undefined,
      'Sluice was short of memory, and the code wrote the most output (4 MB)',
      'Sluice was short of memory, and the code wrote the most output (3 MB)',
      undefined,
    ]);
  });
});

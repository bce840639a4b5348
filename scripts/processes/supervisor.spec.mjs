import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Supervisor } from './supervisor.mjs';

/** Replaces a process: it lives until the test ends it. */
class FakeService {
  name = 'fake';
  kind = /** @type {const} */ ('app');
  pid = ++FakeService.count;
  child = /** @type {any} */ (null);
  static count = 0;
  die = /** @type {(exit: import('./service-process.mjs').Exit) => void} */ (() => {});
  exited = new Promise((resolve) => (this.die = resolve));
  becomeReady = () => {};
  ready = Promise.race([new Promise((resolve) => (this.becomeReady = () => resolve(true))), this.exited.then(() => false)]);
  signal = (/** @type {NodeJS.Signals} */ signal) => this.die({ code: null, signal });
  kill = async () => this.signal('SIGKILL');
  stop = async () => this.signal('SIGTERM');
}

describe('a supervised service', () => {
  /** @type {FakeService[]} */
  let launched;
  /** @type {string[]} */
  let said;
  /** @type {Supervisor<FakeService>} */
  let supervised;
  /** Why it cannot be launched. @type {Error | undefined} */
  let failure;
  const latest = () => /** @type {FakeService} */ (launched.at(-1));

  beforeEach(() => {
    jest.useFakeTimers();
    launched = [];
    said = [];
    failure = undefined;
    supervised = new Supervisor({
      name: 'fake',
      say: (line) => said.push(line),
      launch: async () => {
        if (failure) throw failure;
        const service = new FakeService();
        launched.push(service);
        return /** @type {any} */ (service);
      },
    });
  });

  afterEach(async () => {
    await supervised.stop();
    jest.useRealTimers();
  });

  async function startUp() {
    const started = supervised.start();
    await jest.advanceTimersByTimeAsync(0);
    latest().becomeReady();
    await started;
  }

  test('says every ten seconds that it is not ready, and is waited for however long that takes', async () => {
    const started = supervised.start();
    await jest.advanceTimersByTimeAsync(25_000);
    expect(said).toEqual(['waiting for fake to start, since 10 s', 'waiting for fake to start, since 20 s']);
    await jest.advanceTimersByTimeAsync(600_000);
    said.length = 0;
    latest().becomeReady();
    await started;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(said).toEqual([]);
  });

  test('names its log after twenty seconds', async () => {
    const slow = new Supervisor({
      name: 'slow',
      say: (line) => said.push(line),
      logFile: '/data/slow.log',
      launch: async () => /** @type {any} */ (new FakeService()),
    });
    void slow.start();
    await jest.advanceTimersByTimeAsync(25_000);
    expect(said).toEqual(['waiting for slow to start, since 10 s', 'waiting for slow to start, since 20 s; its log is /data/slow.log']);
    await slow.stop();
  });

  test('can be stopped while it is being launched', async () => {
    const slow = new Supervisor({
      name: 'slow',
      launch: (stopped) => new Promise((_, reject) => stopped.addEventListener('abort', () => reject(new Error('stopped')))),
    });
    const started = slow.start();
    await jest.advanceTimersByTimeAsync(60_000);
    await slow.stop();
    expect(await Promise.race([started, 'not started'])).toBe('not started');
  });

  test('is started once it reports that it is ready', async () => {
    const started = supervised.start();
    await jest.advanceTimersByTimeAsync(1000);
    expect(await Promise.race([started, 'still starting'])).toBe('still starting');
    latest().becomeReady();
    await started;
    expect(supervised.pid).toBe(latest().pid);
  });

  test('is restarted when it dies, with increasing pauses', async () => {
    await startUp();
    for (const pause of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
      const before = launched.length;
      latest().signal('SIGKILL');
      await jest.advanceTimersByTimeAsync(pause - 1);
      expect(launched).toHaveLength(before);
      await jest.advanceTimersByTimeAsync(1);
      expect(launched).toHaveLength(before + 1);
    }
    expect(said[0]).toBe('fake has died (SIGKILL); restarting it in 0.1 s');
  });

  test('is reported with the last line of the reason if it cannot be restarted', async () => {
    await startUp();
    failure = new Error('the end\nof a log\n\nfake did not start: the disk is full');
    latest().signal('SIGKILL');
    await jest.advanceTimersByTimeAsync(100);
    expect(said.at(-1)).toBe('fake has died (fake did not start: the disk is full); restarting it in 0.2 s');
  });

  test('is restarted if it was ready before it died of a wrong configuration', async () => {
    await startUp();
    latest().die({ code: 78, signal: null });
    await jest.advanceTimersByTimeAsync(100);
    expect([said, launched.length]).toEqual([['fake has died (exit code 78); restarting it in 0.1 s'], 2]);
  });

  test('is restarted at once if it had been healthy for long', async () => {
    await startUp();
    latest().signal('SIGKILL');
    await jest.advanceTimersByTimeAsync(100);
    latest().becomeReady();
    await jest.advanceTimersByTimeAsync(60_000);
    latest().signal('SIGKILL');
    await jest.advanceTimersByTimeAsync(100);
    expect(launched).toHaveLength(3);
  });

  test('stays down after a stop, until it is started', async () => {
    await startUp();
    await supervised.stop();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(launched).toHaveLength(1);
    expect(supervised.pid).toBeUndefined();
    await startUp();
    expect(launched).toHaveLength(2);
  });

  test('stays down if it is stopped in the pause after a death', async () => {
    await startUp();
    latest().signal('SIGKILL');
    await jest.advanceTimersByTimeAsync(50);
    await supervised.stop();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(launched).toHaveLength(1);
  });

  test('fails to start if it dies three times before it was ready', async () => {
    const started = supervised.start();
    const failure = expect(started).rejects.toThrow('fake did not start (exit code 1)');
    for (let death = 1; death <= 3; death++) {
      await jest.advanceTimersByTimeAsync(1000);
      latest().die({ code: 1, signal: null });
    }
    await failure;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(launched).toHaveLength(3);
  });

  test('fails to start if it dies once of a wrong configuration', async () => {
    const started = supervised.start();
    const failure = expect(started).rejects.toThrow('fake did not start (exit code 78)');
    await jest.advanceTimersByTimeAsync(0);
    latest().die({ code: 78, signal: null });
    await failure;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(launched).toHaveLength(1);
  });
});

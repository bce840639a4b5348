import { ExplainedError } from '../shell/explained-error.mjs';
import { describeExit } from './service-process.mjs';

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;
// A service that has run this long was healthy: its next death is a new problem.
const HEALTHY_MS = 30_000;
const TRIES_BEFORE_FIRST_READY = 3;

/**
 * Keeps one service running:
 *
 *                    └─ dies 3 times before it was ever ready: start() fails, and it stays down
 *                    └─ dies 3 times before it was ever ready: start() fails, and it stays down
 *
 * @template {import('./service-process.mjs').ServiceProcess & { ready?: Promise<boolean> }} S
 * @param {object} options
 * @param {string} options.name
 * @param {() => Promise<S>} options.launch if the result has no `ready`, the service is ready once it is launched
 * @param {(line: string) => void} [options.say] called when it has died
 * @param {number} [options.reportEveryMs] how often to say that it is not ready yet
 */
export function supervise({ name, launch, say = () => {}, reportEveryMs = 10_000 }) {
  let wanted = false;
  /** @type {S | null} */
  let current = null;
  /** @type {Promise<void>} */
  let loop = Promise.resolve();
  let endPause = () => {};
  /** @type {S | null} the running service, once it is ready */
  let ready = null;
  /** @type {Set<(service: S) => void>} */
  const waitingForReady = new Set();

  /** @param {(error: Error) => void} fail */
  async function keepRunning(fail) {
    let wasReady = false;
    let pauseMs = FIRST_PAUSE_MS;
    for (let tries = 1; wanted; tries++) {
      const startedAt = Date.now();
      const trouble = await runOnce(() => {
        if (wasReady) say(`${name} is running again`);
        wasReady = true;
      });
      if (!wanted) return;
      if (!wasReady && (trouble instanceof Error || tries >= TRIES_BEFORE_FIRST_READY)) {
        wanted = false;
        return fail(trouble instanceof Error ? trouble : new ExplainedError(`${name} did not start (${trouble}); its output is above.`));
      }
      if (Date.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS;
      say(`${name} has died (${trouble instanceof Error ? trouble.message : trouble}); restarting it in ${pauseMs / 1000} s`);
      await pause(pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  /**
   * From one launch to the death of the launched process.
   * @param {() => void} onReady
   * @returns {Promise<string | Error>} what went wrong
   */
  async function runOnce(onReady) {
    try {
      const service = (current = await launch());
      // It was stopped while it started.
      if (!wanted) await service.stop();
      if ((await service.ready) !== false) {
        onReady();
        ready = service;
        for (const notify of waitingForReady) notify(service);
        waitingForReady.clear();
      }
      return describeExit(await service.exited);
    } catch (error) {
      return /** @type {Error} */ (error);
    } finally {
      current = null;
      ready = null;
    }
  }

  /** @param {number} ms */
  async function pause(ms) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    await new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
      endPause = () => resolve(undefined);
    });
    clearTimeout(timer);
  }

  /**
   * Resolves when it is ready: at once if it is ready, otherwise after its next successful start.
   * @returns {Promise<S>}
   */
  const whenReady = async () => ready ?? new Promise((resolve) => void waitingForReady.add(resolve));

  return {
    /** The number of its process; undefined while it is down. */
    get pid() {
      return current?.pid;
    },

    whenReady,

    /**
     * Resolves when it is ready, however long that takes: a starved machine may be slow. Fails if it cannot be started. Does nothing if it is running.
     * @returns {Promise<S>}
     */
    async start() {
      if (wanted) return whenReady();
      wanted = true;
      await loop;
      /** @type {NodeJS.Timeout | undefined} */
      let timer;
      try {
        return await new Promise((resolve, reject) => {
          loop = keepRunning(reject);
          void whenReady().then(resolve);
          const begin = Date.now();
          timer = setInterval(() => say(`waiting for ${name} to start, since ${Math.round((Date.now() - begin) / 1000)} s`), reportEveryMs);
        });
      } finally {
        clearInterval(timer);
      }
    },

    /**
     * Stops it; it stays down until `start()`.
     * @param {{ signal?: NodeJS.Signals }} [options] SIGKILL: at once instead of gracefully
     */
    async stop({ signal } = {}) {
      wanted = false;
      endPause();
      await (signal === 'SIGKILL' ? current?.kill() : current?.stop());
      await loop;
    },

    /**
     * Sends it a signal. It is restarted if it dies of it; with SIGKILL, the promise resolves when it is gone.
     * @param {NodeJS.Signals} [signal]
     */
    async kill(signal = 'SIGKILL') {
      const service = current;
      service?.signal(signal);
      if (signal === 'SIGKILL') await service?.exited;
    },
  };
}

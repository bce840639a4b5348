import { ExplainedError } from './explained-error.mjs';
import { describeExit } from './service-process.mjs';

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 5000;
// What has run this long was healthy: its next death is a new trouble.
const HEALTHY_MS = 30_000;
const TRIES_BEFORE_FIRST_READY = 3;

/**
 * Keeps one service running:
 *
 *     start() ──► starting ──► ready ──► (dies) ──► pause 0.3 … 5 s ──► starting …
 *                    └─ dies 3 times before it was ever ready: start() fails, and it stays down
 *
 * @template {import('./service-process.mjs').ServiceProcess & { ready?: Promise<boolean> }} S
 * @param {object} options
 * @param {string} options.name
 * @param {() => Promise<S>} options.launch without `ready` in its result the service is ready once it is launched
 * @param {(line: string) => void} [options.say] told when it died
 * @param {number} [options.patienceMs] how long it may take until it is ready for the first time
 */
export function supervise({ name, launch, say = () => {}, patienceMs = 120_000 }) {
  let wanted = false;
  /** @type {S | null} */
  let current = null;
  /** @type {Promise<void>} */
  let loop = Promise.resolve();
  let endPause = () => {};
  /** @type {S | null} what runs and is ready */
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
        if (wasReady) say(`${name} runs again`);
        wasReady = true;
      });
      if (!wanted) return;
      if (!wasReady && (trouble instanceof Error || tries >= TRIES_BEFORE_FIRST_READY)) {
        wanted = false;
        return fail(trouble instanceof Error ? trouble : new ExplainedError(`${name} did not start (${trouble}): what it said is above.`));
      }
      if (Date.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS;
      say(`${name} has died (${trouble instanceof Error ? trouble.message : trouble}): starting it again in ${pauseMs / 1000} s`);
      await pause(pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  /**
   * From one launch to the death of what was launched.
   * @param {() => void} onReady
   * @returns {Promise<string | Error>} what went wrong
   */
  async function runOnce(onReady) {
    try {
      const service = (current = await launch());
      // It was told to stop while it started.
      if (!wanted) await service.stop();
      if ((await service.ready) !== false) {
        onReady();
        ready = service;
        for (const tell of waitingForReady) tell(service);
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
   * Resolves when it is ready: at once when it is, or else after its next successful start.
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
     * Resolves when it is ready; fails when it cannot be started. Does nothing when it runs.
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
          timer = setTimeout(() => reject(new ExplainedError(`${name} is not ready after ${patienceMs / 1000} s.`)), patienceMs);
        });
      } finally {
        clearTimeout(timer);
      }
    },

    /**
     * Stops it, and it stays down until `start()`.
     * @param {{ signal?: NodeJS.Signals }} [options] SIGKILL: at once instead of in good order
     */
    async stop({ signal } = {}) {
      wanted = false;
      endPause();
      await (signal === 'SIGKILL' ? current?.kill() : current?.stop());
      await loop;
    },

    /**
     * Sends it a signal. It is started again when it dies of it; with SIGKILL the promise resolves when it is gone.
     * @param {NodeJS.Signals} [signal]
     */
    async kill(signal = 'SIGKILL') {
      const service = current;
      service?.signal(signal);
      if (signal === 'SIGKILL') await service?.exited;
    },
  };
}

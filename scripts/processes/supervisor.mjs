import { ExplainedError } from '../shell/explained-error.mjs';
import { describeExit } from './service-process.mjs';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
// A service that has run this long was healthy: its next death is a new problem.
const HEALTHY_MS = 30_000;
const TRIES_BEFORE_FIRST_READY = 3;
/** A service has logged what is wrong with its configuration, which is the same at the next try (EX_CONFIG of sysexits.h). */
const WRONG_CONFIGURATION = 78;
const REPORT_EVERY_MS = 10_000;
// When a person may want to know why it is not ready yet.
const NAME_LOG_AFTER_MS = 20_000;

/**
 * Keeps one service running:
 *
 *   start() ──► launched ──► ready ──► dies ──► a pause of 0.1 … 5 s ──► launched again
 *                    └─ dies 3 times before it was ever ready, or once of a wrong configuration: start() fails, and it stays down
 *
 * @template {import('./service-process.mjs').ServiceProcess & { ready?: Promise<boolean> }} S
 */
export class Supervisor {
  #wanted = false;
  /** @type {S | null} */
  #current = null;
  /** @type {S | null} the running service, once it is ready */
  #ready = null;
  /** @type {Set<(service: S) => void>} */
  #waitingForReady = new Set();
  /** @type {Promise<void>} */
  #loop = Promise.resolve();
  #endPause = () => {};
  #stopped = new AbortController();
  #name;
  #launch;
  #say;
  #logFile;

  /**
   * @param {object} options
   * @param {string} options.name
   * @param {(stopped: AbortSignal) => Promise<S>} options.launch if the result has no `ready`, the service is ready once it is launched; fails if the service is
   *   stopped before that
   * @param {(line: string) => void} [options.say] called when it has died
   * @param {string} [options.logFile] what it writes that `say` does not show
   */
  constructor({ name, launch, say = () => {}, logFile }) {
    this.#name = name;
    this.#launch = launch;
    this.#say = say;
    this.#logFile = logFile;
  }

  /** The number of its process; undefined while it is down. */
  get pid() {
    return this.#current?.pid;
  }

  /**
   * Resolves when it is ready: at once if it is ready, otherwise after its next successful start.
   * @returns {Promise<S>}
   */
  async whenReady() {
    return this.#ready ?? new Promise((resolve) => void this.#waitingForReady.add(resolve));
  }

  /**
   * Resolves when it is ready, however long that takes: a starved machine may be slow. Fails if it cannot be started. Does nothing if it is running.
   * @returns {Promise<S>}
   */
  async start() {
    if (this.#wanted) return this.whenReady();
    this.#wanted = true;
    this.#stopped = new AbortController();
    await this.#loop;
    const begin = performance.now();
    const report = () => {
      const ms = performance.now() - begin;
      const hint = this.#logFile !== undefined && ms >= NAME_LOG_AFTER_MS ? `; its log is ${this.#logFile}` : '';
      this.#say(`waiting for ${this.#name} to start, since ${Math.round(ms / 1000)} s${hint}`);
    };
    // A service that is stopped before it is ready never ends this wait
    const timer = setInterval(report, REPORT_EVERY_MS).unref();
    try {
      return await new Promise((resolve, reject) => {
        this.#loop = this.#keepRunning(reject);
        void this.whenReady().then(resolve);
      });
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * Stops it; it stays down until `start()`.
   * @param {{ signal?: NodeJS.Signals }} [options] SIGKILL: at once instead of gracefully
   */
  async stop({ signal } = {}) {
    this.#wanted = false;
    this.#endPause();
    this.#stopped.abort();
    await (signal === 'SIGKILL' ? this.#current?.kill() : this.#current?.stop());
    await this.#loop;
  }

  /**
   * Sends it a signal. It is restarted if it dies of it; with SIGKILL, the promise resolves when it is gone.
   * @param {NodeJS.Signals} [signal]
   */
  async kill(signal = 'SIGKILL') {
    const service = this.#current;
    service?.signal(signal);
    if (signal === 'SIGKILL') await service?.exited;
  }

  /** @param {(error: Error) => void} fail */
  async #keepRunning(fail) {
    let wasReady = false;
    let pauseMs = FIRST_PAUSE_MS;
    for (let tries = 1; this.#wanted; tries++) {
      const startedAt = performance.now();
      const { trouble, isFinal } = await this.#runOnce(() => {
        if (wasReady) this.#say(`${this.#name} is running again`);
        wasReady = true;
      });
      if (!this.#wanted) return;
      if (!wasReady && (isFinal || tries >= TRIES_BEFORE_FIRST_READY)) {
        this.#wanted = false;
        return fail(
          trouble instanceof Error ? trouble : new ExplainedError(`${this.#name} did not start (${trouble}); its output is above.`),
        );
      }
      if (performance.now() - startedAt > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS;
      // of several lines, the last one is the reason
      const reason = trouble instanceof Error ? trouble.message.split('\n').at(-1) : trouble;
      this.#say(`${this.#name} has died (${reason}); restarting it in ${pauseMs / 1000} s`);
      await this.#pause(pauseMs);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  /**
   * From one launch to the death of the launched process.
   * @param {() => void} onReady
   * @returns {Promise<{ trouble: string | Error, isFinal: boolean }>} the reason of its end, and whether a first start ends with it
   */
  async #runOnce(onReady) {
    try {
      const service = (this.#current = await this.#launch(this.#stopped.signal));
      // It was stopped while it started.
      if (!this.#wanted) await service.stop();
      if ((await service.ready) !== false) {
        onReady();
        this.#ready = service;
        for (const notify of this.#waitingForReady) notify(service);
        this.#waitingForReady.clear();
      }
      const exit = await service.exited;
      return { trouble: describeExit(exit), isFinal: exit.code === WRONG_CONFIGURATION };
    } catch (error) {
      return { trouble: /** @type {Error} */ (error), isFinal: true };
    } finally {
      this.#current = null;
      this.#ready = null;
    }
  }

  /** @param {number} ms */
  async #pause(ms) {
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    await new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
      this.#endPause = () => resolve(undefined);
    });
    clearTimeout(timer);
  }
}

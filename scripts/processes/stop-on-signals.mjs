import { explain } from '../shell/explained-error.mjs';
import { flush } from '../shell/output.mjs';

// npm forwards the Ctrl-C that this process also receives from the terminal: two signals this close count as one.
const SAME_KEYSTROKE_MS = 1000;
const PARENT_LOOK_MS = 1000;

/**
 * Ends this process gracefully: the first Ctrl-C (SIGTERM, closing the terminal) stops everything, the second one kills
 * it.
 *
 * @param {object} options
 * @param {() => Promise<void>} options.stop
 * @param {() => Promise<void>} options.kill
 * @param {(line: string) => void} options.say
 * @param {import('../shell/output.mjs').Output} options.output what `say` prints to
 */
export function stopOnSignals({ stop, kill, say, output }) {
  /** @type {number | null} */
  let begunAt = null;

  /** @param {number} code the exit code */
  async function begin(code) {
    if (begunAt !== null) return;
    begunAt = performance.now();
    try {
      await stop();
    } catch (error) {
      console.error(explain(error));
      code = 1;
    }
    await flush([output, process.stderr]);
    process.exit(code);
  }

  async function onSignal() {
    if (begunAt === null) {
      say('stopping… (press Ctrl-C again to force)');
      await begin(0);
    } else if (performance.now() - begunAt > SAME_KEYSTROKE_MS) {
      say('killing');
      await kill();
      process.exit(130);
    }
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void onSignal());
  // npm does not forward every signal: when npm has exited, so does this process
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event) setInterval(() => void (process.ppid === parent || begin(0)), PARENT_LOOK_MS).unref();
  process.on('uncaughtException', (error) => {
    console.error(explain(error));
    void begin(1);
  });
  // The terminal, or the program that reads our output, may end first.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

  return {
    begin,
    get begun() {
      return begunAt !== null;
    },
  };
}

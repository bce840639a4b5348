import { explain } from './explained-error.mjs';

// npm passes on the Ctrl-C that the terminal has sent to us as well: two signals this close are one.
const SAME_KEYSTROKE_MS = 1000;
const PARENT_LOOK_MS = 1000;

/**
 * Ends this process in good order: at the first Ctrl-C (SIGTERM, the terminal's closing) everything is stopped, at the second it is
 * killed.
 *
 * @param {object} options
 * @param {() => Promise<void>} options.stop
 * @param {() => Promise<void>} options.kill
 * @param {(line: string) => void} options.say
 */
export function stopOnSignals({ stop, kill, say }) {
  /** @type {number | null} */
  let begunAt = null;

  /** @param {number} code the exit code */
  async function begin(code) {
    if (begunAt !== null) return;
    begunAt = Date.now();
    try {
      await stop();
    } catch (error) {
      console.error(explain(error));
      process.exit(1);
    }
    process.exit(code);
  }

  async function onSignal() {
    if (begunAt === null) {
      say('stopping (once more kills)');
      await begin(0);
    } else if (Date.now() - begunAt > SAME_KEYSTROKE_MS) {
      say('killing');
      await kill();
      process.exit(130);
    }
  }

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void onSignal());
  // npm does not pass every signal on: when it has gone, so do we
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event) setInterval(() => void (process.ppid === parent || begin(0)), PARENT_LOOK_MS).unref();
  process.on('uncaughtException', (error) => {
    console.error(explain(error));
    void begin(1);
  });
  // The terminal, or whatever reads what we print, may be gone before us.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

  return {
    begin,
    get begun() {
      return begunAt !== null;
    },
  };
}

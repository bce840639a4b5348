import { setTimeout as sleep } from 'node:timers/promises';
import type { Run, RunSourceBody } from '@sluice/client';
import { findSource } from '../resources/find.js';
import { CliError, EXIT } from '../session/errors.js';
import { dataOption, countOption } from '../session/option-values.js';
import { cell, itemText, time } from '../session/output.js';
import type { Session } from '../session/session.js';
import { shortStack } from './event-line.js';

const POLL_MS = 300;
const RUN_LIMIT_MS = 10 * 60_000;

/** `sluice run SOURCE [--data JSON]`: runs it now, and waits for the result. */
export async function run(session: Session, text: string, { data, wait }: { data?: string; wait: boolean }): Promise<void> {
  const { id } = await findSource(session.sluice, text, { exactly: !session.isInteractive });
  const body: RunSourceBody = {};
  if (data !== undefined) body.event = await dataOption(data, () => session.stdin());
  const { data: started } = await session.sluice.runSource({ path: { id }, body });
  if (!wait) return session.print(session.format === 'table' ? `${started.id}\n` : itemText(started, session.format));
  const finished = await finishedRun(session, id, started.id);
  if (session.format !== 'table') session.item(finished);
  else session.print(`${finished.status}: ${finished.emitted} emitted, ${finished.duration_ms} ms\n`);
  if (finished.status !== 'succeeded')
    throw new CliError(shortStack(finished.error?.stack || finished.error?.message || `the run ${finished.status}`), EXIT.failed);
}

async function finishedRun(session: Session, source: string, run: string): Promise<Run> {
  const begin = Date.now();
  try {
    while (Date.now() < begin + RUN_LIMIT_MS) {
      const { data } = await session.sluice.listRuns({ path: { id: source }, query: { limit: 100 } });
      const finished = data.find(({ id }) => id === run);
      if (finished) return finished;
      session.progress(`waiting for the run, ${Math.round((Date.now() - begin) / 1000)} s`);
      await sleep(POLL_MS);
    }
  } finally {
    session.progress();
  }
  throw new CliError(`the run ${run} has not ended within ${RUN_LIMIT_MS / 60_000} minutes`);
}

const SHOWN_ERROR = 100;

/** `sluice runs SOURCE`: its last runs, newest first. */
export async function runs(session: Session, text: string, { number = '20' }: { number?: string }): Promise<void> {
  const limit = countOption(number, 1, 100);
  const { id } = await findSource(session.sluice, text);
  const { data } = await session.sluice.listRuns({ path: { id }, query: { limit } });
  session.list(data, [
    ['ID', (each) => each.id],
    ['STARTED', ({ started_at }) => time(started_at)],
    // which hook it was is more useful than `hook`
    ['TRIGGER', ({ trigger, method }) => (trigger === 'hook' ? method : trigger)],
    ['STATUS', ({ status }) => status],
    ['EMITTED', ({ emitted }) => emitted],
    ['MS', ({ duration_ms }) => duration_ms],
    ['ERROR', ({ error }) => cell(error?.message).slice(0, SHOWN_ERROR)],
  ]);
  if (data.length === 0) session.note(`no runs yet; sluice run ${text} runs it now`);
}

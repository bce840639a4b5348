import { SluiceError } from '@sluice/client';
import { showWarnings } from '../code/warnings.js';
import { CliError, EXIT, exitCodeOf, explain, usageError } from '../session/errors.js';
import { readText } from '../session/files.js';
import { printable, styled } from '../session/output.js';
import type { Session } from '../session/session.js';
import { parseManifests, readManifests, unreadManifests } from './manifest.js';
import { DEFAULT_SET } from './owner.js';
import { Plan, type Step } from './plan.js';

export interface ApplyOptions {
  file: string;
  set?: string;
  prune?: boolean;
  dryRun?: boolean;
  yes?: boolean;
}

const DONE = { create: 'created', update: 'updated', delete: 'deleted', none: 'unchanged' } as const;
const STYLE = { create: 'green', update: 'yellow', delete: 'red', none: 'dim' } as const;

async function planned(session: Session, { file, set, prune }: ApplyOptions): Promise<Step[]> {
  if (set !== undefined && !/^[\w.-]{1,40}$/.test(set)) throw usageError('--set must have 1 to 40 letters, digits and characters of ._-');
  const manifests = await readManifests(file, () => session.stdin());
  const unread = unreadManifests(file);
  if (unread.length > 0) session.warn(`${unread[0]} is not read, because it is in a subfolder`);
  const steps = await Plan.of(session.sluice, manifests, {
    ...{ set, prune, env: session.env },
    onCode: (id, placeOf) => showWarnings(session, id, placeOf),
  });
  refuseMoved(steps, unread, file);
  return steps;
}

/** Throws a usage error if `--prune` would delete what a file in a subfolder describes: it was moved there. */
function refuseMoved(steps: Step[], unread: string[], folder: string): void {
  const deletions = steps.filter(({ action }) => action === 'delete');
  if (deletions.length === 0) return;
  for (const file of unread)
    for (const manifest of parseManifests(readText(file), file, folder)) {
      const moved = deletions.find((step) => step.isOf?.(manifest));
      if (moved)
        throw usageError(`--prune would delete ${moved.what}, which is in ${manifest.origin}: move that file to ${folder}, or elsewhere`);
    }
}

/** `sluice apply -f DIR`: makes the account what the manifests say; does not touch what is right already. */
export async function apply(session: Session, options: ApplyOptions): Promise<void> {
  const steps = await planned(session, options);
  if (options.dryRun) return showPlan(session, steps);
  await confirmDeletions(session, steps, options);
  const { format } = session;
  const results: { what: string; result: string }[] = [];
  try {
    for (const step of steps) {
      const outcome = await outcomeOf(step);
      const result = { what: step.what, result: DONE[outcome] };
      // at once if the format allows it: a signal may end the next step
      if (format === 'table') session.printStyled(line(outcome, result.result, step.what, step.changes));
      else if (format === 'ndjson') session.item(result);
      else results.push(result);
    }
  } finally {
    // also if a step has failed: those before it are done
    if (format === 'json' || format === 'yaml') session.list(results, []);
  }
}

async function outcomeOf({ action, what, uncertain, run }: Step): Promise<Step['action']> {
  if (action === 'none' && uncertain.length === 0) return action;
  try {
    const changed = await run();
    return action === 'none' && changed === true ? 'update' : action;
  } catch (error) {
    const isTaken = error instanceof SluiceError && error.status === 409 && error.message.includes('external_id');
    const remedy = isTaken ? '; another apply has created it in the meantime: apply again' : '';
    throw Object.assign(error as Error, { message: `${what}: ${(error as Error).message}${remedy}` });
  }
}

async function confirmDeletions(session: Session, steps: Step[], { yes, set = DEFAULT_SET }: ApplyOptions): Promise<void> {
  const deletions = steps.filter(({ action }) => action === 'delete');
  if (deletions.length === 0 || yes || !session.isInteractive) return;
  for (const { what } of deletions) session.warn(`delete ${what}`);
  await session.confirm(`Delete ${deletions.length} resource(s) of the set ${set}?`, yes);
}

/** `sluice diff -f DIR`: what `apply` would change. Exits with 1 if it is anything, and only then. */
export async function diff(session: Session, options: ApplyOptions): Promise<void> {
  const steps = await planned(session, options).catch((error: unknown) => {
    throw exitCodeOf(error) === EXIT.failed ? new CliError(explain(error), EXIT.usage) : error;
  });
  showPlan(session, steps);
  const differences = steps.filter(({ action }) => action !== 'none').length;
  if (differences > 0) throw new CliError(`${differences} of ${steps.length} differ`, EXIT.failed);
}

function showPlan(session: Session, steps: Step[]): void {
  if (session.format !== 'table')
    return session.list(
      steps.map(({ action, what, changes, uncertain }) => ({ action, what, changes, uncertain })),
      [],
    );
  for (const { action, what, changes, uncertain } of steps) {
    session.printStyled(line(action, action === 'none' ? 'no change' : action, what, changes));
    if (uncertain.length > 0) session.note(`  only apply can compare ${uncertain.join(', ')} of ${what}`);
  }
}

const line = (action: Step['action'], word: string, what: string, changes: string[]): string =>
  `${styled(STYLE[action], word.padEnd(9), process.stdout)}  ${printable(`${what}${changes.length > 0 ? `: ${changes.join(', ')}` : ''}`)}\n`;

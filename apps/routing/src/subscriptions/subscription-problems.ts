import { type FieldProblem, isId } from '#contracts';
import { eventNameProblem } from '#events';

/** All sources, all workflows. */
export const GLOBS: ReadonlySet<string> = new Set(['dc_*', 'p_*']);

/** Whether it stands for many emitters: a glob, or an account. */
export const isPattern = (emitterId: string): boolean => GLOBS.has(emitterId) || isId('user', emitterId);

/** Wider than our ids are: what only looks like one doesn't exist, and is told so. */
const EMITTER = /^(?:dc|p)_[\w-]{1,64}$/;
const LISTENER = /^(?:dc|p|wh)_[\w-]{1,64}$/;

/** What is wrong with the form of a subscription: one sentence per bad field. What exists is another question. */
export function subscriptionProblems(emitterId: string, listenerId: string, eventName: string): FieldProblem[] {
  const problems = listenerProblems(listenerId, eventName);
  // somebody else's account is well-formed: that it isn't the caller's is said like of any other resource
  if (!EMITTER.test(emitterId) && !isPattern(emitterId)) {
    problems.unshift({ field: 'emitter_id', message: 'emitter_id must be the id of a source or workflow, dc_*, p_* or your own id' });
  }
  return problems;
}

/** The same of what listens, and of the stream. */
export function listenerProblems(listenerId: string, eventName: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!LISTENER.test(listenerId))
    problems.push({ field: 'listener_id', message: 'listener_id must be the id of a source, workflow or webhook' });
  const nameProblem = eventNameProblem(eventName);
  if (nameProblem) problems.push({ field: 'event_name', message: nameProblem });
  return problems;
}

import { type FieldProblem, isId } from '#contracts';
import { eventNameProblem } from '#events';

/** All sources, all workflows. */
export const GLOBS: ReadonlySet<string> = new Set(['dc_*', 'p_*']);

/** Whether it stands for many emitters: a glob, or an account. */
export const isPattern = (emitterId: string): boolean => GLOBS.has(emitterId) || isId('user', emitterId);

/** Wider than the format of ids, so that an id of almost the right form gets `not found`. */
const EMITTER = /^(?:dc|p)_[\w-]{1,64}$/;
const LISTENER = /^(?:dc|p|wh)_[\w-]{1,64}$/;

/** The problems with the form of a subscription, one sentence per invalid field. Whether the resources exist is checked later. */
export function subscriptionProblems(emitterId: string, listenerId: string, eventName: string): FieldProblem[] {
  const problems = listenerProblems(listenerId, eventName);
  // the id of another account is well-formed: it gets `not found`, like any other resource
  if (!EMITTER.test(emitterId) && !isPattern(emitterId)) {
    problems.unshift({ field: 'emitter_id', message: 'emitter_id must be the id of a source or workflow, dc_*, p_* or your own id' });
  }
  return problems;
}

/** The same for the listener and the stream. */
export function listenerProblems(listenerId: string, eventName: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (!LISTENER.test(listenerId))
    problems.push({ field: 'listener_id', message: 'listener_id must be the id of a source, workflow or webhook' });
  const nameProblem = eventNameProblem(eventName);
  if (nameProblem) problems.push({ field: 'event_name', message: nameProblem });
  return problems;
}

import { type FieldProblem, isId } from '#contracts';
import { eventNameProblem } from './streams.js';

/** All sources, all workflows. */
const GLOBS: ReadonlySet<string> = new Set(['dc_*', 'p_*']);

/** Whether it stands for many emitters: a glob, or an account. */
export const isEmitterPattern = (emitterId: string): boolean => GLOBS.has(emitterId) || isId('user', emitterId);

/** Wider than the format of ids, so that an id of almost the right form gets `not found`. */
const EMITTER = /^(?:dc|p)_[\w-]{1,64}$/;
const LISTENER = /^(?:dc|p|wh)_[\w-]{1,64}$/;

/** The problem with the form of a subscription's emitter, or null. The id of another account is well-formed: it gets `not found`. */
export const subscribedEmitterProblem = (id: string): string | null =>
  EMITTER.test(id) || isEmitterPattern(id) ? null : 'emitter_id must be the id of a source or workflow, dc_*, p_* or your own id';

/** The problem with the form of a subscription's listener, or null. */
export const subscribedListenerProblem = (id: string): string | null =>
  LISTENER.test(id) ? null : 'listener_id must be the id of a source, workflow or webhook';

/** The problems with the form of a subscription, one sentence per invalid field. Whether the resources exist is checked later. */
export const subscriptionProblems = (emitterId: string, listenerId: string, eventName: string): FieldProblem[] => [
  ...problem('emitter_id', subscribedEmitterProblem(emitterId)),
  ...autoSubscriptionProblems(listenerId, eventName),
];

/** The same for an auto-subscription. */
export const autoSubscriptionProblems = (listenerId: string, eventName: string): FieldProblem[] => [
  ...problem('listener_id', subscribedListenerProblem(listenerId)),
  ...problem('event_name', eventNameProblem(eventName)),
];

const problem = (field: string, message: string | null): FieldProblem[] => (message === null ? [] : [{ field, message }]);

import { emittedStreamProblem } from '#events';
import type { DedupeStrategy, Emit } from '../sandbox/sandbox.js';
import { dedupe, type DedupeState } from './dedupe.js';

const YEAR_MS = 366 * 86_400_000;
/** The codes of the errors. */
export const REFUSALS = ['BadStreamName', 'DedupeError', 'DeliveryTooLate'] as const;

/** The emits of a run. */
export interface JudgedEmits {
  /** Those that become events, now or at their time. */
  emits: Emit[];
  state: DedupeState;
  /** Those that become errors. */
  refused: { emit: Emit; code: (typeof REFUSALS)[number]; reason: string }[];
}

/** Decides which emits of a run become events. Those in neither list are duplicates. */
export function judgedEmits(all: Emit[], strategy: DedupeStrategy | null, before: DedupeState, now: number): JudgedEmits {
  const refused: JudgedEmits['refused'] = [];
  const refuse = (emit: Emit, code: (typeof REFUSALS)[number], reason: string | null): boolean => {
    if (reason !== null) refused.push({ emit, code, reason });
    return reason === null;
  };
  const named = all.filter((emit) => refuse(emit, 'BadStreamName', nameProblem(emit)));
  const deduped = dedupe(named, strategy, before);
  for (const { emit, reason } of deduped.refused) refuse(emit, 'DedupeError', reason);
  const emits = deduped.emits.filter((emit) =>
    refuse(emit, 'DeliveryTooLate', (emit.deliveryTs ?? 0) > now + YEAR_MS ? 'delivery_ts must be at most one year ahead' : null),
  );
  return { emits, state: deduped.state, refused };
}

/** Of the reserved `$` streams, a component may emit only on `$errors` and `$logs`. */
function nameProblem({ name }: Emit): string | null {
  const problem = name === undefined ? null : emittedStreamProblem(name);
  return problem === null ? null : `$emit: ${problem}`;
}

import type { DedupeStrategy, Emit } from '../sandbox/sandbox.js';

/** The state that a source keeps between runs. Each strategy uses one member; the others are kept for the time when the component has their strategy again. */
export interface DedupeState {
  /** The last 100 ids, oldest first. */
  ids?: string[];
  /** A text if a number would lose digits. */
  greatest?: number | string;
  last?: string;
}

export interface Deduped {
  emits: Emit[];
  state: DedupeState;
  /** The problem of each emit that cannot be deduped. */
  refused: { emit: Emit; reason: string }[];
}

const REMEMBERED = 100;
/** Of an id in an error, in characters. */
const LONGEST_SHOWN = 100;

/** Sorts the emits of one run by `ts` and drops those that the strategy already knows. */
export function dedupe(emits: Emit[], strategy: DedupeStrategy | null, before: DedupeState): Deduped {
  const sorted = byTs(emits);
  if (strategy === null) return { emits: sorted, state: before, refused: [] };
  const refused = sorted
    .filter((emit) => problem(emit, strategy) !== null)
    .map((emit) => ({ emit, reason: problem(emit, strategy) ?? '' }));
  const usable = sorted.filter((emit) => problem(emit, strategy) === null);
  return { ...strategies[strategy](usable, before), refused };
}

type Strategy = (emits: Emit[], before: DedupeState) => Omit<Deduped, 'refused'>;

const strategies: Record<DedupeStrategy, Strategy> = {
  unique: (emits, before) => {
    // in order of insertion
    const ids = new Set(before.ids);
    const fresh = emits.filter(({ id }) => {
      if (ids.has(id!)) return false;
      ids.add(id!);
      if (ids.size > REMEMBERED) ids.delete(ids.values().next().value!);
      return true;
    });
    return { emits: fresh, state: { ...before, ids: [...ids] } };
  },
  greatest: (emits, before) => {
    // compared with the greatest value before the run, so that the order within the run does not matter
    const known = before.greatest === undefined ? -Infinity : numeric(before.greatest);
    const fresh = emits.filter(({ id }) => numeric(id!) > known);
    const greatest = fresh.map(({ id }) => numeric(id!)).reduce((max, value) => (value > max ? value : max), known);
    return { emits: fresh, state: { ...before, greatest: greatest === -Infinity ? undefined : storable(greatest) } };
  },
  last: (emits, before) => {
    const known = emits.findIndex(({ id }) => id === before.last);
    const fresh = emits.slice(known + 1);
    return { emits: fresh, state: { ...before, last: fresh.at(-1)?.id ?? before.last } };
  },
};

function problem({ id }: Emit, strategy: DedupeStrategy): string | null {
  if (id === undefined || id === '') return `dedupe "${strategy}" requires an id for every emit`;
  if (strategy === 'greatest' && (id.trim() === '' || !Number.isFinite(Number(id))))
    return `dedupe "greatest" requires numeric ids, not "${shown(id)}"`;
  return null;
}

const shown = (id: string): string => (id.length > LONGEST_SHOWN ? `${id.slice(0, LONGEST_SHOWN).toWellFormed()}…` : id);

/** An id as a number, exact also above 2^53. A bigint and a number are compared by their mathematical values. */
function numeric(id: string | number): bigint | number {
  return typeof id === 'string' && /^\s*[+-]?\d+\s*$/.test(id) ? BigInt(id) : Number(id);
}

function storable(value: bigint | number): number | string {
  return typeof value === 'number' || Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}

/** Sorts the emits that have a `ts` among themselves, stably. The others keep their positions. */
function byTs(emits: Emit[]): Emit[] {
  const dated = emits.filter(({ ts }) => ts !== undefined).sort((a, b) => a.ts! - b.ts!);
  let next = 0;
  return emits.map((emit) => (emit.ts === undefined ? emit : dated[next++]!));
}

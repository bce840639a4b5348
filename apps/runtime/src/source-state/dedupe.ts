import type { DedupeStrategy, Emit } from '../sandbox/sandbox.js';

/** The state that a source keeps between runs, as its strategy needs it. */
export interface DedupeState {
  /** The last 100 ids, oldest first. */
  ids?: string[];
  greatest?: number;
  last?: string;
}

export interface Deduped {
  emits: Emit[];
  state: DedupeState;
  /** The problem of each emit that cannot be deduped. */
  refused: { emit: Emit; reason: string }[];
}

const REMEMBERED = 100;

/** Sorts the emits of one run by `ts` (stable; emits without a `ts` come last) and drops those that the strategy already knows. */
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
    const ids = [...(before.ids ?? [])];
    const fresh = emits.filter(({ id }) => {
      if (ids.includes(id!)) return false;
      ids.push(id!);
      if (ids.length > REMEMBERED) ids.shift();
      return true;
    });
    return { emits: fresh, state: { ids } };
  },
  greatest: (emits, before) => {
    // compared with the greatest value before the run, so that the order within the run does not matter
    const fresh = emits.filter(({ id }) => before.greatest === undefined || Number(id) > before.greatest);
    const greatest = fresh.reduce<number | undefined>((max, { id }) => Math.max(max ?? -Infinity, Number(id)), before.greatest);
    return { emits: fresh, state: { greatest } };
  },
  last: (emits, before) => {
    const known = emits.findIndex(({ id }) => id === before.last);
    const fresh = emits.slice(known + 1);
    return { emits: fresh, state: { last: fresh.at(-1)?.id ?? before.last } };
  },
};

function problem({ id }: Emit, strategy: DedupeStrategy): string | null {
  if (id === undefined || id === '') return `dedupe "${strategy}" requires an id for every emit`;
  if (strategy === 'greatest' && !Number.isFinite(Number(id))) return `dedupe "greatest" requires numeric ids, not "${id}"`;
  return null;
}

function byTs(emits: Emit[]): Emit[] {
  if (emits.every(({ ts }) => ts === undefined)) return emits;
  return emits
    .map((emit, index) => ({ emit, index }))
    .sort((a, b) => (a.emit.ts === undefined || b.emit.ts === undefined ? a.index - b.index : a.emit.ts - b.emit.ts || a.index - b.index))
    .map(({ emit }) => emit);
}

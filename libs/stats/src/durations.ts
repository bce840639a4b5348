/** Slots per doubling of the duration: a slot is 9 % wide. */
const PER_DOUBLING = 8;
/** Ends at about an hour. */
const LAST = 175;

/** The slot that counts a duration. Slot `n` ends at `2 ** (n / 8)` ms. */
export const slotOf = (ms: number): number => (ms <= 1 ? 0 : Math.min(LAST, Math.ceil(Math.log2(ms) * PER_DOUBLING)));

/** Adds the counts of slots to `into`. */
export function addSlots(into: number[], slots: readonly number[]): void {
  for (let slot = into.length; slot < slots.length; slot++) into.push(0);
  slots.forEach((count, slot) => (into[slot] = (into[slot] ?? 0) + count));
}

/** The duration in ms that this share of the counted ones does not exceed; null if none is counted. */
export function percentile(slots: readonly number[], share: number): number | null {
  const rank = share * slots.reduce((sum, count) => sum + count, 0);
  if (rank === 0) return null;
  let counted = 0;
  const slot = slots.findIndex((count) => (counted += count) >= rank);
  // the middle of the slot
  return slot === 0 ? 1 : Math.round(2 ** ((slot - 0.5) / PER_DOUBLING));
}

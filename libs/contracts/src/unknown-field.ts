/** The problem of a field that is not among the known ones, with the name that was most likely meant. */
export function unknownField(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  const hint = nearest === undefined ? `known are ${known.join(', ')}` : `did you mean ${nearest}?`;
  return `unknown field ${JSON.stringify(name.slice(0, 100))}; ${hint}`;
}

/** If the edits exceed this share of the length, the names are different words, not typos. */
const TYPO = 0.5;

/** The known name that was most likely meant by a mistyped one, or undefined. */
function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > 64) return undefined;
  const plain = plainOf(name);
  const [nearest] = known
    .map((each) => ({ each, distance: editDistance(plain, plainOf(each)) / Math.max(plain.length, each.length) }))
    .filter(({ distance }) => distance <= TYPO)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.each;
}

/** `componentId` means `component_id`. */
const plainOf = (name: string): string => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase();

/** How many characters must be inserted, deleted or replaced to turn one text into the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

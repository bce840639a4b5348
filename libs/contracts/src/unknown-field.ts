/** The problem of a field that is not among the known ones, with the name that was most likely meant. */
export const unknownField = (name: string, known: readonly string[]): string => unknownFields([name], known)[0]!;

/** The problem of each of these fields. The first that resembles no known field lists them for all. */
export function unknownFields(names: readonly string[], known: readonly string[], kind: 'field' | 'parameter' = 'field'): string[] {
  let list = `; known are ${known.join(', ')}`;
  return names.map((name) => {
    const problem = `unknown ${kind} ${JSON.stringify(name.slice(0, 100))}`;
    const nearest = nearestName(name, known, SIMILAR);
    if (nearest !== undefined) return `${problem}; did you mean ${nearest}?`;
    const text = problem + list;
    list = '';
    return text;
  });
}

/** Whether a name that is not among the known ones is probably one of them, mistyped: then it is refused even where unknown names are ignored. */
export const isTypo = (name: string, known: readonly string[]): boolean => meantBy(name, known) !== undefined;

/** The known name of which a name is probably a typo. */
export const meantBy = (name: string, known: readonly string[]): string | undefined => nearestName(name, known, TYPO);

/** If the edits exceed this share of the length, the names are different words: a suggestion would only confuse. */
const SIMILAR = 0.5;
/** The same for refusing a name that would otherwise be ignored: other clients may send `event`, and must not fail because there is an `event_name`. */
const TYPO = 0.25;

/** The known name that was most likely meant by a mistyped one, or undefined. */
function nearestName(name: string, known: readonly string[], most: number): string | undefined {
  if (name.length > 64) return undefined;
  const plain = plainOf(name);
  const [nearest] = known
    .map((each) => ({ each, distance: editDistance(plain, plainOf(each)) / plainOf(each).length }))
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.each;
}

/** `componentId` means `component_id`. */
const plainOf = (name: string): string => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase();

/** How many characters must be inserted, deleted, replaced or swapped with the next one to turn one text into the other (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const areSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1, areSwapped ? before[j - 2]! + 1 : Infinity));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}

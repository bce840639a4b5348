import { type ArgumentMetadata, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type FieldProblem, Invalid } from '#contracts';
import { fieldsOf, PayloadPipe } from '#messaging';

type Contract = abstract new (...args: never[]) => unknown;

/** Allowed in every body, as in every query. */
const SELECTION = ['include', 'exclude'];
/** At most this many in one response. */
const MOST_PROBLEMS = 10;

/** Validates what a route receives. A body with a field that the route does not know is refused, because a typo would otherwise be ignored silently. */
export class RequestPipe extends PayloadPipe {
  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    const unknown = metadata.type === 'body' && metadata.metatype ? unknownFields(metadata.metatype as Contract, value) : [];
    if (unknown.length === 0) return super.transform(value, metadata);
    try {
      await super.transform(value, metadata);
    } catch (error) {
      if (error instanceof Invalid) throw new Invalid([...(error.details.errors ?? []), ...unknown]);
      throw error;
    }
    throw new Invalid(unknown);
  }
}

/** A problem for each field of a body that its class does not name. */
function unknownFields(contract: Contract, body: unknown): FieldProblem[] {
  if (typeof body !== 'object' || body === null || Buffer.isBuffer(body)) return [];
  const known = [...fieldsOf(contract), ...SELECTION];
  return Object.keys(body)
    .filter((name) => !known.includes(name))
    .slice(0, MOST_PROBLEMS)
    .map((name) => {
      const shown = name.slice(0, 100);
      const nearest = nearestName(name, known);
      const hint = nearest === undefined ? `known are ${known.join(', ')}` : `did you mean ${nearest}?`;
      return { field: shown, message: `unknown field ${JSON.stringify(shown)}; ${hint}` };
    });
}

/**
 * Parameters that come in the query string and are accepted in a JSON body too: the query wins. Unknown names are refused in the body and ignored in the
 * query.
 *
 * @param contract the class of the parameters
 */
export const Parameters = createParamDecorator(
  (contract: abstract new (...args: never[]) => unknown, context: ExecutionContext): Record<string, unknown> => {
    const { body, query } = context.switchToHttp().getRequest<FastifyRequest>();
    const unknown = unknownFields(contract, body);
    if (unknown.length > 0) throw new Invalid(unknown);
    return { ...(body as object | undefined), ...(query as object) };
  },
);

/** If the edits exceed this share of the length, the names are different words, not typos. */
const TYPO = 0.5;

/** The known name that was most likely meant by a mistyped one, or undefined. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
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

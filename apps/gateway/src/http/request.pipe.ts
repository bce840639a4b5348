import type { ArgumentMetadata } from '@nestjs/common';
import { type FieldProblem, Invalid } from '#contracts';
import { fieldsOf, PayloadPipe } from '#messaging';
import { nearestName } from './nearest-name.js';

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
export function unknownFields(contract: Contract, body: unknown): FieldProblem[] {
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

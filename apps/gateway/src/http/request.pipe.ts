import { type ArgumentMetadata, createParamDecorator, type ExecutionContext, type PipeTransform } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { type FieldProblem, Invalid, isTypo, unknownFields } from '#contracts';
import { fieldsOf, PayloadPipe } from '#messaging';

type Contract = abstract new (...args: never[]) => unknown;

/** Allowed in every body, as in every query. */
const SELECTION = ['include', 'exclude'];
/** At most this many in one response. */
const MOST_PROBLEMS = 10;

/** Validates what a route receives. A body with a field that the route does not know is refused, because a typo would otherwise be ignored silently. */
export class RequestPipe extends PayloadPipe {
  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type === 'query') return super.transform(value, metadata).catch((error: unknown) => namesRepeated(error, value as Fields));
    const unknown = metadata.type === 'body' && metadata.metatype ? unknownIn(metadata.metatype as Contract, value) : [];
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

/** Throws the error; it then says which parameters of the query are invalid because they occur more than once. */
function namesRepeated(error: unknown, query: Fields): never {
  if (!(error instanceof Invalid) || !error.details.errors) throw error;
  throw new Invalid(error.details.errors.map((problem) => (Array.isArray(query[problem.field]) ? givenTwice(problem.field) : problem)));
}

type Fields = Record<string, unknown>;

const givenTwice = (field: string): FieldProblem => ({ field, message: `${field} must be given only once` });

/** A problem for each field of a body that its class does not name. */
function unknownIn(contract: Contract, body: unknown): FieldProblem[] {
  if (typeof body !== 'object' || body === null || Buffer.isBuffer(body)) return [];
  return unknownNames('field', body, fieldsOf(contract));
}

/**
 * A problem for each name in the query of a write that is one of these, mistyped: if it were ignored, the write would not do what the client meant.
 *
 * @param names the parameters of the route
 */
export const mistypedParameters = (query: object, names: readonly string[]): FieldProblem[] =>
  unknownNames('parameter', query, names, isTypo);

function unknownNames(
  kind: 'field' | 'parameter',
  fields: object,
  names: readonly string[],
  isRefused: typeof isTypo = () => true,
): FieldProblem[] {
  const known = [...names, ...SELECTION];
  const unknown = Object.keys(fields)
    .filter((name) => !known.includes(name) && isRefused(name, known))
    .slice(0, MOST_PROBLEMS);
  const messages = unknownFields(unknown, known, kind);
  return unknown.map((name, at) => ({ field: name.slice(0, 100), message: messages[at]! }));
}

/** Validates fields that depend on each other. The service validates them, too, but a malformed id in the path would be reported first. */
export const checkedBy = <T extends object>(check: (body: T) => void): PipeTransform<T, T> => ({
  transform: (body) => {
    check(body);
    return body;
  },
});

/**
 * Parameters that come in the query string and are accepted in a JSON body too: the query wins. Unknown names are refused in the body. In the
 * query, other clients send more than is known here, so only mistyped names are refused; a DELETE refuses all, because it would delete more than the
 * client meant.
 *
 * @param contract the class of the parameters
 */
export const Parameters = createParamDecorator(
  (contract: abstract new (...args: never[]) => unknown, context: ExecutionContext): Record<string, unknown> => {
    const { method, body, query } = context.switchToHttp().getRequest<FastifyRequest>();
    const names = fieldsOf(contract);
    const unknown = method === 'DELETE' ? unknownNames('parameter', query as object, names) : mistypedParameters(query as object, names);
    const repeated = names.filter((name) => Array.isArray((query as Fields)[name]));
    const problems = [...unknownIn(contract, body), ...unknown, ...repeated.map(givenTwice)];
    if (problems.length > 0) throw new Invalid(problems);
    return { ...(body as object | undefined), ...(query as object) };
  },
);

import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { map, type Observable } from 'rxjs';
import { Invalid } from '#contracts';

export interface FieldSelection {
  include: ReadonlySet<string> | null;
  exclude: ReadonlySet<string> | null;
}

type Resource = Record<string, unknown>;

/** The top-level fields of a resource to return; null: all. */
export function fieldSelection(include: unknown, exclude: unknown): FieldSelection | null {
  const selection = { include: names('include', include), exclude: names('exclude', exclude) };
  return selection.include || selection.exclude ? selection : null;
}

function names(parameter: string, value: unknown): ReadonlySet<string> | null {
  if (value === undefined || value === null || value === '') return null;
  const text = Array.isArray(value) ? value.join(',') : value;
  if (typeof text !== 'string') throw new Invalid([{ field: parameter, message: `${parameter} must be comma-separated field names` }]);
  // a set: a body may contain a million names
  const list = new Set(text.split(',').map((name) => name.trim()));
  list.delete('');
  return list.size === 0 ? null : list;
}

/** Include first, then exclude; unknown names are ignored. */
export function selectFields<Value>(resource: Record<string, Value>, { include, exclude }: FieldSelection): Record<string, Value> {
  return Object.fromEntries(Object.entries(resource).filter(([name]) => (include === null || include.has(name)) && !exclude?.has(name)));
}

/** Reads `include` and `exclude`: in the query, and in the body where there is one; the query wins, unless it is empty. */
export function requestedFields(request: FastifyRequest): FieldSelection | null {
  const query = request.query as Record<string, unknown>;
  const body = (request.body ?? {}) as Record<string, unknown>;
  return fieldSelection(query.include || body.include, query.exclude || body.exclude);
}

/** Applies `include` and `exclude` to `data`, or to each item of it. */
@Injectable()
export class FieldsInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    // before the handler runs: a malformed selection must change nothing
    const selection = requestedFields(context.switchToHttp().getRequest<FastifyRequest>());
    if (!selection) return next.handle();
    return next.handle().pipe(
      map((response: unknown) => {
        if (response === null || typeof response !== 'object' || !('data' in response)) return response;
        const { data } = response as { data: Resource | Resource[] };
        return {
          ...response,
          data: Array.isArray(data) ? data.map((item) => selectFields(item, selection)) : selectFields(data, selection),
        };
      }),
    );
  }
}

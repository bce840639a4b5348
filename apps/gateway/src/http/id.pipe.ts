import { Injectable, type PipeTransform } from '@nestjs/common';
import { setImmediate } from 'node:timers/promises';
import { type IdKind, isId, NotFound } from '#contracts';

/** The kinds whose name in error messages differs. */
const NAMES: Partial<Record<IdKind, string>> = { apiKey: 'API key' };

/** An id in a path. A malformed id is 404: no resource has it. */
@Injectable()
export class IdPipe implements PipeTransform<string> {
  constructor(private readonly kind: IdKind) {}

  async transform(value: string): Promise<string> {
    if (!isId(this.kind, value)) await rejectLast(new NotFound(NAMES[this.kind] ?? this.kind, value));
    return value;
  }
}

/** Lets the pipes of the other parameters, which run concurrently, throw first: 400 takes precedence over 404. */
export async function rejectLast(error: NotFound): Promise<never> {
  await setImmediate();
  throw error;
}

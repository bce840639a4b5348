import { Injectable, type PipeTransform } from '@nestjs/common';
import { setImmediate } from 'node:timers/promises';
import { type IdKind, isId, NotFound } from '#contracts';

/** The kinds whose name in a sentence is another. */
const NAMES: Partial<Record<IdKind, string>> = { apiKey: 'API key' };

/** A path's id: one that has not even the form of its kind is of nothing that exists. */
@Injectable()
export class IdPipe implements PipeTransform<string> {
  constructor(private readonly kind: IdKind) {}

  async transform(value: string): Promise<string> {
    if (isId(this.kind, value)) return value;
    // the other parameters' pipes, which run beside this one, speak first: malformed is 400 before it's 404
    await setImmediate();
    throw new NotFound(NAMES[this.kind] ?? this.kind, value);
  }
}

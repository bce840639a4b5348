import { Injectable, type PipeTransform } from '@nestjs/common';
import { type IdKind, isId, NotFound } from '#contracts';

/** A path's id: one that has not even the form of its kind is of nothing that exists. */
@Injectable()
export class IdPipe implements PipeTransform<string> {
  constructor(private readonly kind: IdKind) {}

  transform(value: string): string {
    if (!isId(this.kind, value)) throw new NotFound(this.kind, value);
    return value;
  }
}

import { Injectable, type PipeTransform } from '@nestjs/common';
import { NotFound } from '#contracts';

/** A component key or id in a path. One with a NUL character does not exist: PostgreSQL cannot store it, nor compare with it. */
@Injectable()
export class KeyPipe implements PipeTransform<string> {
  transform(value: string): string {
    if (value.includes('\0')) throw new NotFound('component', value);
    return value;
  }
}

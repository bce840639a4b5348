import { Injectable, type PipeTransform } from '@nestjs/common';
import { NotFound } from '#contracts';

/** A path's component key or id: nothing is kept under one with a NUL character, and it can't even be asked for. */
@Injectable()
export class KeyPipe implements PipeTransform<string> {
  transform(value: string): string {
    if (value.includes('\0')) throw new NotFound('component', value);
    return value;
  }
}

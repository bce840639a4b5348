import { ValidationPipe, type ValidationPipeOptions } from '@nestjs/common';
import { type ClassConstructor, type ClassTransformOptions, instanceToPlain, plainToInstance } from 'class-transformer';
import { verbatimFields } from '#contracts';
import { invalidPayload } from './invalid-payload.js';

/** Payloads as their contracts say, or Invalid with each bad field. What a contract takes verbatim stays as it came. */
export class PayloadPipe extends ValidationPipe {
  constructor(options: ValidationPipeOptions = {}) {
    const transformerPackage = { plainToInstance: instanceOf, classToPlain: instanceToPlain };
    super({ transform: true, whitelist: true, exceptionFactory: invalidPayload, transformerPackage, ...options });
  }

  protected override stripProtoKeys(): void {
    // in users' data such keys are data, and into an instance class-transformer copies none
  }
}

function instanceOf<T>(contract: ClassConstructor<T>, plain: unknown, options?: ClassTransformOptions): T | T[] {
  const fields = verbatimFields(contract);
  if (fields.length === 0 || typeof plain !== 'object' || plain === null) return plainToInstance(contract, plain, options);
  const given = Object.entries(plain);
  const instance = plainToInstance(contract, Object.fromEntries(given.filter(([field]) => !fields.includes(field))), options);
  return Object.assign(instance as object, Object.fromEntries(given.filter(([field]) => fields.includes(field)))) as T;
}

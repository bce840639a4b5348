import { type ArgumentMetadata, ValidationPipe, type ValidationPipeOptions } from '@nestjs/common';
import { type ClassConstructor, type ClassTransformOptions, instanceToPlain, plainToInstance } from 'class-transformer';
import { getMetadataStorage, ValidationTypes } from 'class-validator';
import { invalidPayload } from './invalid-payload.js';

/** Payloads as their contracts say, or Invalid with each bad field. Users' data in them stays as it came. */
export class PayloadPipe extends ValidationPipe {
  constructor(options: ValidationPipeOptions = {}) {
    const transformerPackage = { plainToInstance: instanceOf, classToPlain: instanceToPlain };
    super({ transform: true, whitelist: true, exceptionFactory: invalidPayload, transformerPackage, ...options });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    // validated already, by the consumer
    if (metadata.metatype !== undefined && value instanceof metadata.metatype) return value;
    return super.transform(value, metadata);
  }

  protected override stripProtoKeys(): void {
    // in users' data such keys are data, and none but a contract's own fields come into an instance
  }
}

/**
 * An instance of the contract with those fields that it has rules for. class-transformer sees only texts, numbers and nested
 * contracts: any other object it would copy key by key, without bound in depth, and stumble over keys such as `constructor`.
 */
function instanceOf<T>(contract: ClassConstructor<T>, plain: unknown, options?: ClassTransformOptions): T {
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) return plain as T;
  const transformed: [string, unknown][] = [];
  const kept: [string, unknown][] = [];
  for (const [field, isNested] of fieldsOf(contract)) {
    if (!Object.hasOwn(plain, field)) continue;
    const value = (plain as Record<string, unknown>)[field];
    (isNested || typeof value !== 'object' ? transformed : kept).push([field, value]);
  }
  return Object.assign(plainToInstance(contract, Object.fromEntries(transformed), options) as object, Object.fromEntries(kept)) as T;
}

const fieldsByContract = new WeakMap<object, Map<string, boolean>>();

/** The fields of a contract, its parents' too, and whether one is a contract itself. */
function fieldsOf(contract: ClassConstructor<unknown>): Map<string, boolean> {
  let fields = fieldsByContract.get(contract);
  if (fields) return fields;
  fields = new Map();
  for (const { propertyName, type } of getMetadataStorage().getTargetValidationMetadatas(contract, '', false, false))
    fields.set(propertyName, fields.get(propertyName) === true || type === ValidationTypes.NESTED_VALIDATION);
  fieldsByContract.set(contract, fields);
  return fields;
}

import { type ArgumentMetadata, type Type, ValidationPipe, type ValidationPipeOptions } from '@nestjs/common';
import { type ClassConstructor, type ClassTransformOptions, instanceToPlain, plainToInstance } from 'class-transformer';
import { getMetadataStorage, type ValidationError, ValidationTypes } from 'class-validator';
import { type FieldProblem, Invalid, MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';
import type { LogRecord } from './log-record.js';

/** Validates a payload by its contract, or throws Invalid with each invalid field. Users' data in it stays unchanged. */
export class PayloadPipe extends ValidationPipe {
  constructor(options: ValidationPipeOptions = {}) {
    const transformerPackage = { plainToInstance: instanceOf, classToPlain: instanceToPlain };
    super({ transform: true, whitelist: true, exceptionFactory: invalidPayload, transformerPackage, ...options });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    // the consumer has validated it
    if (metadata.metatype !== undefined && value instanceof metadata.metatype) return value;
    return super.transform(value, metadata);
  }

  protected override stripProtoKeys(): void {
    // in users' data such keys are data; an instance has only the fields of its contract
  }
}

/**
 * An instance of the contract with the fields that it has rules for. class-transformer only sees strings, numbers and nested
 * contracts: it would copy any other object key by key, without a depth limit, and fail on keys such as `constructor`.
 */
function instanceOf<T>(contract: ClassConstructor<T>, plain: unknown, options?: ClassTransformOptions): T {
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) return plain as T;
  const transformed: [string, unknown][] = [];
  const kept: [string, unknown][] = [];
  for (const [field, isNested] of fieldKinds(contract)) {
    if (!Object.hasOwn(plain, field)) continue;
    const value = (plain as Record<string, unknown>)[field];
    (isNested || typeof value !== 'object' ? transformed : kept).push([field, value]);
  }
  return Object.assign(plainToInstance(contract, Object.fromEntries(transformed), options) as object, Object.fromEntries(kept)) as T;
}

const fieldsByContract = new WeakMap<object, Map<string, boolean>>();

/** The names of the fields of a contract and its parents. */
export const fieldsOf = (contract: abstract new (...args: never[]) => unknown): string[] => [
  ...fieldKinds(contract as ClassConstructor<unknown>).keys(),
];

/** The fields of a contract and its parents, and which of them are contracts. */
function fieldKinds(contract: ClassConstructor<unknown>): Map<string, boolean> {
  let fields = fieldsByContract.get(contract);
  if (fields) return fields;
  fields = new Map();
  for (const { propertyName, type } of getMetadataStorage().getTargetValidationMetadatas(contract, '', false, false))
    fields.set(propertyName, fields.get(propertyName) === true || type === ValidationTypes.NESTED_VALIDATION);
  fieldsByContract.set(contract, fields);
  return fields;
}

/** One problem per invalid field: the first. */
const invalidPayload = (errors: ValidationError[]): Invalid => new Invalid(errors.flatMap((error) => problems(error, '')));

function problems(error: ValidationError, path: string): FieldProblem[] {
  const field = path + error.property;
  const first = Object.values(error.constraints ?? {})[0];
  return [
    ...(first === undefined ? [] : [{ field, message: first }]),
    ...(error.children ?? []).flatMap((child) => problems(child, `${field}.`)),
  ];
}

/** The record does not belong on its topic. A retry does not help: it goes to the dead-letter topic with this reason. */
export class BadRecord extends Error {
  override readonly name = 'BadRecord';
}

const pipe = new PayloadPipe();

/** The record's value. Throws BadRecord if it is not JSON, or nested more deeply than we can serialize. */
export function jsonOf(record: LogRecord): unknown {
  return record.value === null ? null : parsed(record.value.toString('utf8'));
}

/** As `jsonOf`, of a text. */
export function parsed(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadRecord(`not JSON: ${(error as Error).message}`);
  }
  if (nestsTooDeeply(value)) throw new BadRecord(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  return value;
}

/** The payload of a message, validated by its class; fields that the class does not name are omitted. Throws BadRecord. */
export async function payloadOf<Payload extends object>(payload: Type<Payload>, record: LogRecord): Promise<Payload> {
  const value = jsonOf(record);
  try {
    return (await pipe.transform(value, { type: 'body', metatype: payload })) as Payload;
  } catch (error) {
    throw new BadRecord((error as Error).message);
  }
}

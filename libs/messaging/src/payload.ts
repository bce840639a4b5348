import type { Type } from '@nestjs/common';
import { MAX_JSON_DEPTH, nestsTooDeeply } from '#contracts';
import { PayloadPipe } from './payload-pipe.js';
import type { LogRecord } from './log-record.js';

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

import { createHash } from 'node:crypto';
import type { SourceId } from '#contracts';
import type { EmittedEvent } from './event-record.js';

type Emit = Pick<EmittedEvent, 'emitterId' | 'stream' | 'emitId'>;

/** The identity of an emit, as text from which ids are made. */
export function emitKeyOf({ emitterId, stream, emitId }: Emit): string {
  const names = [stream, emitId];
  // otherwise, a line break within a name could stand for the one between them
  return `${emitterId}\n${names.some((name) => name.includes('\n')) ? JSON.stringify(names) : names.join('\n')}`;
}

/** The runs of an event: the id of each is `event-` and 40 hex digits of the SHA-256 of this text and the source's id. */
export const runKeyOf = (emit: Emit): string => `${emitKeyOf(emit)}\n`;

/** The id of the run that an event makes of a source: the same one also when a producer's retry put the emit into the log twice. */
export const runIdOf = (event: Emit, sourceId: SourceId): string =>
  `event-${createHash('sha256')
    .update(`${runKeyOf(event)}${sourceId}`)
    .digest('hex')
    .slice(0, 40)}`;

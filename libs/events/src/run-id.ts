import { createHash } from 'node:crypto';
import type { SourceId } from '#contracts';
import type { EmittedEvent } from './event-record.js';

/** The runs of an event: the id of each is `event-` and 40 hex digits of the SHA-256 of this text and the source's id. */
export const runKeyOf = ({ emitterId, stream, emitId }: Pick<EmittedEvent, 'emitterId' | 'stream' | 'emitId'>): string =>
  `${emitterId}\n${stream}\n${emitId}\n`;

/** The id of the run that an event makes of a source: the same one also when a producer's retry put the emit into the log twice. */
export const runIdOf = (event: Pick<EmittedEvent, 'emitterId' | 'stream' | 'emitId'>, sourceId: SourceId): string =>
  `event-${createHash('sha256')
    .update(`${runKeyOf(event)}${sourceId}`)
    .digest('hex')
    .slice(0, 40)}`;

import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Allow } from 'class-validator';
import {
  type EmitterId,
  type FieldProblem,
  Invalid,
  isEmitterId,
  isListenerId,
  type ListenerId,
  type ReplayId,
  type ReplayProgress,
} from '#contracts';
import { DEFAULT_STREAM, EVERY_STREAM, emittedStreamProblem, parseEventId, comparePlaces, type Stream, streamOf } from '#events';
import { EVENT_NAME } from '../http/api-docs.js';
import { problemWith, TIME, timeOf } from '../http/time-of.js';

const END =
  'An event id, or a time: ISO 8601 (UTC without a zone) or Unix seconds. Inclusive: a time without a fraction includes its whole second.';
/** With a title: both ends have the same type. As a float, a time would be wrong by a minute. */
const REPLAY_END = { title: 'ReplayEnd', description: END, oneOf: [{ type: 'string' }, { type: 'number', format: 'double' }] };

/** Its fields are checked by `requestedReplay`, which knows what they have to do with each other. */
export class CreateReplayBody {
  @ApiProperty({ description: 'The source or workflow whose events are delivered.', example: 'dc_0Vg2mXq1Zk3TnB7cYw' })
  @Allow()
  emitter_id!: string;

  @ApiPropertyOptional({
    ...EVENT_NAME,
    type: String,
    nullable: true,
    description: 'The stream; default: the default one; `*`: it and all custom ones.',
  })
  @Allow()
  event_name?: string | null;

  @ApiProperty({ ...REPLAY_END, example: '2026-01-31T12:00:00Z' })
  @Allow()
  from!: string | number;

  @ApiProperty({ ...REPLAY_END, example: '2026-01-31T13:00:00Z' })
  @Allow()
  to!: string | number;

  @ApiProperty({ description: 'The webhook, source or workflow that gets them.', example: 'wh_0Vg2mXq1Zk3TnB7cYw' })
  @Allow()
  listener_id!: string;

  @ApiPropertyOptional({ type: Boolean, description: 'Only count the events; default: false.' })
  @Allow()
  dry_run?: boolean | null;
}

/** A replay as the API returns it. */
export class Replay implements ReplayProgress {
  @ApiProperty({ type: String, example: 'rpl_0Vg2mXq1Zk3TnB7cYw' }) id!: ReplayId;
  @ApiProperty({ enum: ['running', 'done', 'cancelled'] }) status!: ReplayProgress['status'];
  @ApiProperty({ type: 'integer', description: 'How many events it delivers.' }) events!: number;
  @ApiProperty({
    type: 'integer',
    description: 'So far. To a source: its run succeeded. To a workflow: handed over, whatever becomes of it.',
  })
  delivered!: number;
  @ApiProperty({
    type: 'integer',
    description:
      'Not delivered so far: an attempt failed, and they are retried on the usual schedule, the run of the source failed, or their event was deleted, by a request or because it was too old.',
  })
  failed!: number;
}

const EVENT_OR_TIME = `an event id, or ${TIME}`;

/** A replay as a body requests it. */
export interface RequestedReplay {
  emitter_id: EmitterId;
  listener_id: ListenerId;
  stream: Stream;
  from_id: string;
  to_id: string;
  dry_run: boolean;
}

/** Throws Invalid with each bad field. */
export function requestedReplay(body: CreateReplayBody): RequestedReplay {
  const { emitter_id, listener_id } = body;
  const problems: FieldProblem[] = [];
  const bad = (field: keyof CreateReplayBody, must: string) => problems.push({ field, message: `${field} ${must}` });
  if (!isEmitterId(emitter_id)) bad('emitter_id', 'must be the id of a source or workflow');
  if (!isListenerId(listener_id)) bad('listener_id', 'must be the id of a webhook, source or workflow');
  const event_name: unknown = body.event_name ?? DEFAULT_STREAM;
  if (typeof event_name !== 'string') bad('event_name', 'must be a string');
  const stream = streamOf(String(event_name));
  const streamProblem = stream === EVERY_STREAM ? null : emittedStreamProblem(stream);
  if (streamProblem) problems.push({ field: 'event_name', message: streamProblem });
  const [from_id, to_id] = (['from', 'to'] as const).map((end) => {
    const value: unknown = body[end];
    const id = eventIdAt(end, value);
    if (id === undefined) bad(end, problemWith(value, EVENT_OR_TIME));
    return id ?? '';
  }) as [string, string];
  const dry_run: unknown = body.dry_run ?? false;
  if (typeof dry_run !== 'boolean') bad('dry_run', 'must be true or false');
  const [first, last] = [parseEventId(from_id), parseEventId(to_id)];
  if (first && last && comparePlaces(first, last) > 0) bad('to', 'must not be before from');
  if (problems.length > 0) throw new Invalid(problems);
  return {
    emitter_id: emitter_id as EmitterId,
    listener_id: listener_id as ListenerId,
    stream,
    from_id,
    to_id,
    dry_run: dry_run === true,
  };
}

/**
 * The event id of one end of the range; undefined if the value names none. A time is the first or the last position in the millisecond or second that it
 * names.
 */
function eventIdAt(end: 'from' | 'to', value: unknown): string | undefined {
  const text = typeof value === 'number' && value >= 0 ? String(value) : value;
  if (typeof text !== 'string') return undefined;
  if (parseEventId(text)) return text;
  const ms = timeOf(text);
  if (ms === undefined) return undefined;
  if (end === 'from') return `${ms}-0`;
  // the API returns times in whole seconds: such a time as an end must include the event that it comes from
  return `${ms + (text.includes('.') ? 0 : 999)}-${Number.MAX_SAFE_INTEGER}`;
}

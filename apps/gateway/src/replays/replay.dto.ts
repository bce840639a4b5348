import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { Allow, IsBoolean, IsOptional, IsString } from 'class-validator';
import { type FieldProblem, Invalid, isEmitterId, isListenerId, type ReplayId, type ReplayProgress } from '#contracts';
import { DEFAULT_STREAM, EVERY_STREAM, emittedStreamProblem, parseEventId, comparePlaces, streamOf } from '#events';
import { EVENT_NAME } from '../http/api-docs.js';
import { timeOf } from '../http/time-of.js';

const END =
  'An event id, or a time: ISO 8601 (UTC without a zone) or Unix seconds. Inclusive: a time without a fraction includes its whole second.';
/** With a title: both ends have the same type. As a float, a time would be wrong by a minute. */
const REPLAY_END = { title: 'ReplayEnd', description: END, oneOf: [{ type: 'string' }, { type: 'number', format: 'double' }] };

export class CreateReplayBody {
  @ApiProperty({ description: 'The source or workflow whose events are delivered.', example: 'dc_0Vg2mXq1Zk3TnB7cYw' })
  @IsString({ message: 'emitter_id must be the id of a source or workflow' })
  emitter_id!: string;

  @ApiPropertyOptional({
    ...EVENT_NAME,
    type: String,
    nullable: true,
    description: 'The stream; default: the default one; `*`: it and all custom ones.',
  })
  @IsOptional()
  @IsString({ message: 'event_name must be a string' })
  event_name?: string | null;

  @ApiProperty({ ...REPLAY_END, example: '2026-01-31T12:00:00Z' })
  @Allow()
  from!: string | number;

  @ApiProperty({ ...REPLAY_END, example: '2026-01-31T13:00:00Z' })
  @Allow()
  to!: string | number;

  @ApiProperty({ description: 'The webhook, source or workflow that gets them.', example: 'wh_0Vg2mXq1Zk3TnB7cYw' })
  @IsString({ message: 'listener_id must be the id of a webhook, source or workflow' })
  listener_id!: string;

  @ApiPropertyOptional({ type: Boolean, default: false, description: 'Only count the events.' })
  @IsOptional()
  @IsBoolean({ message: 'dry_run must be true or false' })
  dry_run?: boolean | null;
}

/** A replay as the API returns it. */
export class Replay implements ReplayProgress {
  @ApiProperty({ type: String, example: 'rpl_0Vg2mXq1Zk3TnB7cYw' }) id!: ReplayId;
  @ApiProperty({ enum: ['running', 'done', 'cancelled'] }) status!: ReplayProgress['status'];
  @ApiProperty({ type: 'integer', description: 'How many events it delivers.' }) events!: number;
  @ApiProperty({ type: 'integer' }) delivered!: number;
  @ApiProperty({ type: 'integer', description: 'Their first attempt failed; they are retried on the usual schedule.' }) failed!: number;
}

/** The part of an emitter's events that a body names, as event ids. Throws Invalid with each bad field. */
export function replayedPart({ emitter_id, event_name, from, to, listener_id }: CreateReplayBody): {
  stream: string;
  from_id: string;
  to_id: string;
} {
  const problems: FieldProblem[] = [];
  const bad = (field: string, message: string) => problems.push({ field, message });
  if (!isEmitterId(emitter_id)) bad('emitter_id', 'emitter_id must be the id of a source or workflow');
  if (!isListenerId(listener_id)) bad('listener_id', 'listener_id must be the id of a webhook, source or workflow');
  const stream = streamOf(event_name ?? DEFAULT_STREAM);
  const streamProblem = stream === EVERY_STREAM ? null : emittedStreamProblem(stream);
  if (streamProblem) bad('event_name', streamProblem);
  const [from_id, to_id] = [placeText('from', from, bad), placeText('to', to, bad)];
  const [first, last] = [parseEventId(from_id), parseEventId(to_id)];
  if (problems.length === 0 && first && last && comparePlaces(first, last) > 0) bad('to', 'to must not be before from');
  if (problems.length > 0) throw new Invalid(problems);
  return { stream, from_id, to_id };
}

/** The event id of one end of the range. A time is the first or the last position in the millisecond or second that it names. */
function placeText(end: 'from' | 'to', value: unknown, bad: (field: string, message: string) => unknown): string {
  const text = typeof value === 'number' && value >= 0 ? String(value) : value;
  if (typeof text === 'string' && parseEventId(text)) return text;
  const ms = typeof text === 'string' ? timeOf(text) : undefined;
  if (typeof text !== 'string' || ms === undefined) {
    bad(end, `${end} must be an event id or a time: ISO 8601 or Unix seconds`);
    return '0-0';
  }
  if (end === 'from') return `${ms}-0`;
  // the API returns times in whole seconds: such a time as an end must include the event that it comes from
  return `${ms + (text.includes('.') ? 0 : 999)}-${Number.MAX_SAFE_INTEGER}`;
}

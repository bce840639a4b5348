import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { query } from './contract.js';
import { type EmitterId, IsId, type UserId } from './ids.js';
import { PageInfo, PageRequest } from './page.js';

export class EventMetadata {
  @ApiProperty({ type: String }) emitter_id!: EmitterId;
  @ApiProperty() emit_id!: string;
  @ApiProperty({ description: 'The stream: empty for the default one.' }) name!: string;
  @ApiPropertyOptional() summary?: string;
  @ApiPropertyOptional({ description: "The emitter's own id of the item." }) id?: string;
  @ApiPropertyOptional({ type: 'integer', description: 'Milliseconds.' }) ts?: number;
}

/** An event as the summaries show it. */
export class EventSummary {
  @ApiProperty({ example: '1763715600123-40960' }) id!: string;
  @ApiProperty({ type: 'integer', description: 'Milliseconds.' }) indexed_at_ms!: number;
  @ApiProperty({
    anyOf: [
      { type: 'object' },
      { type: 'array', items: {} },
      { type: 'string' },
      { type: 'number' },
      { type: 'boolean' },
      { type: 'null' },
    ],
    description: 'Any JSON value; over 1 KB and without expand=event, an object with its leading members and "$truncated": true.',
  })
  event!: unknown;
  @ApiProperty({ type: EventMetadata }) metadata!: EventMetadata;
}

export class ListEvents extends PageRequest {
  @IsId('user') owner_id!: UserId;
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsString() stream!: string;
  @IsOptional() @IsBoolean() expand?: boolean;
}

/** The answer as JSON text: the store builds it from the events' own bytes, and nobody parses them on the way. */
export interface EventPage {
  page_info: PageInfo;
  /** The JSON text of each event summary. */
  items: string[];
  /** There are fewer items than asked for only because more wouldn't fit into one message: ask on from the cursor. */
  cut?: boolean;
}
export const listEvents = query<EventPage>()('event-store.event.list', ListEvents);

export class EmitterReference {
  @IsId('user') owner_id!: UserId;
  @IsId('source', 'workflow') emitter_id!: EmitterId;
}

/** A stream of an emitter, as the API returns it. */
export class EmitterStream {
  @ApiProperty({ description: 'Empty for the default stream.' }) event_name!: string;
  @ApiProperty({ type: 'integer', description: 'Events that are kept now.' }) count!: number;
  @ApiProperty({ type: 'integer', description: 'Unix seconds.' }) last_event_at!: number;
}
/** The streams of an emitter that hold events. */
export const listStreams = query<EmitterStream[]>()('event-store.stream.list', EmitterReference);

/** How far the store has taken in a partition of the topic `events`: all below `offset`; `clock` is that of the record just below, in ms. */
export interface StoredPosition {
  partition: number;
  offset: number;
  clock: number;
}

export class GetStoredPositions {}
/** Of every partition that the store has begun. Whoever reads on from there computes the event ids that the store does. */
export const getStoredPositions = query<StoredPosition[]>()('event-store.event.positions', GetStoredPositions);

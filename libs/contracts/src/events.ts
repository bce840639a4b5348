import { IsBoolean, IsOptional, IsString } from 'class-validator';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { query } from './contract.js';
import { type EmitterId, IsId, type UserId } from './ids.js';
import { PageInfo, PageRequest } from './page.js';

export class EventMetadata {
  @ApiProperty({ type: String }) emitter_id!: EmitterId;
  @ApiProperty() emit_id!: string;
  @ApiProperty({ description: 'The name of the stream; empty for the default one.' }) name!: string;
  @ApiPropertyOptional() summary?: string;
  @ApiPropertyOptional({ description: "The emitter's id of the item." }) id?: string;
  @ApiPropertyOptional({ type: 'integer', description: 'Milliseconds.' }) ts?: number;
}

/** An event as the summaries contain it. */
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
    description: 'Any JSON value. Without expand=event, an event over 1 KB is an object with its first members and "$truncated": true.',
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

/** A page as JSON text: the store assembles it from the bytes of the events, and no service parses them. */
export interface EventPage {
  page_info: PageInfo;
  /** The JSON text of each event summary. */
  items: string[];
  /** There are fewer items than requested only because more would not fit into one message: continue from the cursor. */
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

/** How far the store has read a partition of the topic `events`: every record below `offset`; `clock` is the clock of the record just below it, in ms. */
export interface StoredPosition {
  partition: number;
  offset: number;
  clock: number;
  /** The timestamp of the record just below `offset`, in ms, which identifies the log; undefined if it is unknown. */
  timestamp?: number;
}

export class GetStoredPositions {}
/** The positions of all partitions that the store has begun to read. A reader that starts there computes the same event ids as the store. */
export const getStoredPositions = query<StoredPosition[]>()('event-store.event.positions', GetStoredPositions);

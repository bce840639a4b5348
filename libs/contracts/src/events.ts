import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsInt, IsOptional, IsString, Min, ValidateNested } from 'class-validator';
import { query } from './contract.js';
import { type EmitterId, IsId, type UserId } from './ids.js';
import { type PageInfo, PageRequest } from './page.js';

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
  /** There are fewer items than requested only because more would not fit into one reply: continue from the cursor. */
  cut?: boolean;
}
export const listEvents = query<EventPage>()('event-store.event.list', ListEvents);

export class EmitterReference {
  @IsId('user') owner_id!: UserId;
  @IsId('source', 'workflow') emitter_id!: EmitterId;
}

/** A stream of an emitter, as the API returns it. */
export interface EmitterStream {
  event_name: string;
  count: number;
  last_event_at: number;
}
/** The streams of an emitter that hold events. */
export const listStreams = query<EmitterStream[]>()('event-store.stream.list', EmitterReference);

export class FindEvent extends EmitterReference {
  /** `<ms>-<seq>` */
  @IsString() event_id!: string;
  /** Whether the reply may lack what the store has not read yet: for lists. Otherwise, the reply includes each deletion that was acknowledged before. */
  @IsOptional() @IsBoolean() may_lag?: boolean;
}

/** A deletion of a range of an emitter's events, as the log has it: event ids, both inclusive. */
export interface EventDeletion {
  /** null: every stream; `*`: the default one and all custom ones. */
  stream: string | null;
  start_id: string | null;
  end_id: string | null;
  /** The place of the deletion itself: it deletes nothing that was emitted after it. */
  at_id: string;
}

/** The state of an event in the store. */
export interface StoredEvent {
  /** null: the event is not stored. */
  event: { stream: string; emit_id: string; json: string } | null;
  /** The deletions that include the event's place: one of each stream that has some. */
  deletions: EventDeletion[];
}
export const findEvent = query<StoredEvent>()('event-store.event.find', FindEvent);

/** Deletions of an emitter's events in this part, both inclusive; of all events if it is absent. */
export class ListDeletions extends EmitterReference {
  /** `<ms>-<seq>` */
  @IsOptional() @IsString() from_id?: string;
  @IsOptional() @IsString() to_id?: string;
  /** The place of a deletion: only later ones. */
  @IsOptional() @IsString() after_id?: string;
}
/**
 * The deletions that the log may still contain, with each that was acknowledged before the request; of those of the same range, the last one. At the end the
 * emitter's last deletion, whatever it deletes: its place is the `after_id` of a request for later ones. `unprocessable`: there are too many.
 */
export const listDeletions = query<EventDeletion[]>()('event-store.event.deletions', ListDeletions);

/** A part of a partition of the topic `events`. */
export class FindEmittersBetween {
  @IsInt() @Min(0) partition!: number;
  @IsInt() @Min(0) from_offset!: number;
  /** Exclusive. */
  @IsInt() @Min(0) to_offset!: number;
  /** In ms. Older events with the same offsets are those of another log. */
  @IsInt() @Min(0) since_ms!: number;
}

/** How many of an emitter's kept events are from this part. */
export interface EmitterEvents {
  emitter_id: EmitterId;
  events: number;
}
/** The emitters whose kept events were read from a part of the topic `events`. */
export const findEmittersBetween = query<EmitterEvents[]>()('event-store.event.emitters-between', FindEmittersBetween);

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

/**
 * Identifies an emit that waits for its `delivery_ts`. The emit keeps one emit id: as the event that shows it on `$in`, as the waiting row
 * in the runtime, and as the event that it becomes.
 */
export class WaitingEmitKey {
  @IsId('source', 'workflow') emitter_id!: EmitterId;
  @IsString() emit_id!: string;
}

/** An emit that waits for its `delivery_ts`. */
export class WaitingEmit extends WaitingEmitKey {
  /** When it began to wait, in ms. */
  @IsOptional() @IsInt() since_ms?: number;
}

export class FindWithdrawnEmits {
  @IsArray() @ValidateNested({ each: true }) @Type(() => WaitingEmit) emits!: WaitingEmit[];
}
/** How long a caller waits for the reply, and the store works on it. Shorter than the shutdown timeout of a process. */
export const FIND_WITHDRAWN_WITHIN_MS = 5000;
/**
 * Returns the given emits whose event has been deleted from `$in` by a deletion that was acknowledged before the request. They must not be emitted. The store
 * knows the last events on `$in` by their ids, and older ones, which it does not show, by the time since which they wait.
 */
export const findWithdrawnEmits = query<WaitingEmitKey[]>()('event-store.emit.find-withdrawn', FindWithdrawnEmits);

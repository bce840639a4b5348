/** A stream of an emitter: '' is the default one; `$errors`, `$logs` and `$in` are reserved; any other name is a custom stream. */
export type Stream = string;

export const DEFAULT_STREAM: Stream = '';
export const ERRORS_STREAM: Stream = '$errors';
export const LOGS_STREAM: Stream = '$logs';
/** Emits that wait for their `delivery_ts`: can be read and deleted, but not subscribed to. */
export const WAITING_STREAM: Stream = '$in';

/** Stands for the default stream and all custom ones of an emitter, never for `$errors`, `$logs` and `$in`. */
export const EVERY_STREAM = '*';

/** Reserved streams that can be subscribed to. */
const RESERVED = [ERRORS_STREAM, LOGS_STREAM];
const NAME_LENGTH = 128;

/** Whether the stream is `$errors` or `$logs`. */
export const isReserved = (stream: Stream): boolean => RESERVED.includes(stream);

/** `default` is an alias of the default stream. */
export const streamOf = (eventName: string | undefined): Stream =>
  eventName === undefined || eventName === 'default' ? DEFAULT_STREAM : eventName;

/** The name of a stream where an empty name is not possible: in `ce_type`. */
export const ceTypeOf = (stream: Stream): string => (stream === DEFAULT_STREAM ? 'default' : stream);

/** Whether someone who wants these streams, one or `*`, gets this one. */
export const coversStream = (wanted: Stream, stream: Stream): boolean =>
  wanted === stream || (wanted === EVERY_STREAM && !stream.startsWith('$'));

/** The streams that a subscription can be to in order to get this one; see `coversStream`. */
export const streamsCovering = (stream: Stream): Stream[] => (stream.startsWith('$') ? [stream] : [stream, EVERY_STREAM]);

/** The problem of an event name in a subscription, or null. `*` is allowed. */
export const eventNameProblem = (eventName: string): string | null => problemOf(eventName, RESERVED);

function problemOf(eventName: string, reserved: Stream[]): string | null {
  // CloudEvents forbids NUL, and PostgreSQL cannot store it
  if (eventName.includes('\0')) return 'event_name must not contain a NUL character';
  if (!eventName.isWellFormed()) return 'event_name must not contain an unpaired surrogate';
  if ([...eventName].length > NAME_LENGTH) return `event_name must be at most ${NAME_LENGTH} characters long`;
  if (eventName.startsWith('$') && !reserved.includes(eventName))
    return `event_name may begin with $ only as ${reserved.slice(0, -1).join(', ')} or ${reserved.at(-1)}`;
  return null;
}

/** The problem of a stream name for an emit, or null. */
export const emittedStreamProblem = (eventName: string): string | null =>
  eventName === EVERY_STREAM ? 'event_name must not be *, which stands for all streams' : eventNameProblem(eventName);

/** The stream of an event of this type that names none: a type that cannot be a stream is only a type. */
export function streamOfType(type: string | undefined): Stream {
  const stream = streamOf(type);
  return emittedStreamProblem(stream) === null ? stream : DEFAULT_STREAM;
}

/** The problem of the name of a stream to read or delete, or null. `$in` and `*` are allowed. */
export const readableStreamProblem = (eventName: string): string | null => problemOf(eventName, [...RESERVED, WAITING_STREAM]);

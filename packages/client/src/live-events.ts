import { SluiceError, UnreachableError } from './errors.js';
import { framesOf } from './event-stream-parser.js';
import type { EventSummary } from './generated/index.js';
import { sleep } from './sleep.js';

export interface EventsOptions {
  /** The stream; default: the default one. `*`: it and all custom ones. */
  eventName?: string;
  /** Start with the events after the one with this id; default: with the events that are emitted from now on. */
  after?: string;
  /** Whether events over 1 KB are complete; default: true. */
  expand?: boolean;
  /** Parses an event, for instance to keep numbers that JavaScript cannot represent; default: JSON.parse. */
  parse?: (text: string) => unknown;
  /** Ends the iteration. */
  signal?: AbortSignal;
  /** Called whenever the stream is connected, and when it is not: `reason` says why. */
  onState?: (state: { connected: true } | { connected: false; reason: string }) => void;
  /** Called when events may be missing: Sluice keeps the last 100 of a stream, and more were emitted while the stream was not connected. */
  onGap?: () => void;
}

/** How the stream is reached. */
export interface LiveConnection {
  /** Requests the stream after the event with this id. Throws SluiceError if it is refused, UnreachableError, or the reason of the signal. */
  connect(after: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** The id of the newest event now; `0-0` if there is none. Throws SluiceError or UnreachableError. */
  newest(signal: AbortSignal): Promise<string>;
}

/** Sluice sends a comment every 15 seconds: a connection that is silent for longer is dead, for instance because the machine slept. */
const SILENCE_MS = 40_000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/**
 * Events as they are emitted. Reconnects after every failure of the connection, with the id of the last event, so that none is missed or repeated. Ends only
 * with the signal, `return` or `throw`. Throws SluiceError if the request is refused for good (400, 401, 403, 404), and what a function of the caller throws.
 */
export function liveEvents(connection: LiveConnection, options: EventsOptions): AsyncGenerator<EventSummary> {
  const end = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
  const events = followed(connection, { ...options, signal });
  const finish = events.return.bind(events);
  // a generator finishes only when its next event has arrived
  events.return = (value) => {
    end.abort();
    return finish(value);
  };
  events.throw = async (error) => {
    await events.return(undefined);
    throw error;
  };
  return events;
}

async function* followed(
  connection: LiveConnection,
  { after, parse = JSON.parse, signal, onState, onGap }: EventsOptions & { signal: AbortSignal },
): AsyncGenerator<EventSummary> {
  let [cursor, failures] = [after, 0];
  while (!signal.aborted) {
    let silence: Silence | undefined;
    try {
      // without a cursor, an event emitted before a reconnection would be missed
      cursor ??= await connection.newest(signal);
      silence = new Silence(SILENCE_MS);
      const body = await connection.connect(cursor, AbortSignal.any([signal, silence.signal]));
      silence.over();
      onState?.({ connected: true });
      for await (const frame of framesOf(bytesOf(body))) {
        silence.over();
        failures = 0;
        if ('comment' in frame) {
          if (frame.comment.startsWith('only the last')) onGap?.();
          continue;
        }
        silence.pause();
        const event = parse(frame.data) as EventSummary;
        cursor = frame.id ?? cursor;
        yield event;
        silence.over();
      }
      onState?.({ connected: false, reason: 'the server closed the stream' });
    } catch (error) {
      if (signal.aborted) return;
      if (!isPassing(error)) throw error;
      onState?.({ connected: false, reason: error.message });
    } finally {
      silence?.end();
    }
    const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** failures++) * (0.5 + Math.random() / 2);
    await sleep(delay, signal);
  }
}

/** Whether the connection failed, and another one may not. Every other error is that of a function of the caller, which would fail again. */
const isPassing = (error: unknown): error is Error =>
  error instanceof UnreachableError || (error instanceof SluiceError && (error.status >= 500 || error.status === 429));

/** The bytes of a response. Throws UnreachableError if it breaks off. */
async function* bytesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  // not every browser can iterate a stream
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw new UnreachableError((error as Error).message, { cause: error });
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Aborts its signal when a connection has been silent for too long. */
class Silence {
  private readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly limitMs: number) {
    this.over();
  }

  /** Something has arrived: starts again. */
  over(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.controller.abort(new UnreachableError('the connection was silent')), this.limitMs);
  }

  /** The reader is busy with an event, which may take any time. */
  pause(): void {
    clearTimeout(this.timer);
  }

  /** The connection is needed no more: closes it. */
  end(): void {
    this.pause();
    this.controller.abort();
  }
}

import type { EventSummary, SluiceClient } from '@sluice/client';
import { findEmitter } from '../resources/find.js';
import { parseExactly } from '../session/exact-json.js';
import { countOption } from '../session/option-values.js';
import { itemText } from '../session/output.js';
import type { Session } from '../session/session.js';
import { eventText, shortStack } from './event-line.js';
import { otherStreams, streamText } from '../resources/stream-hints.js';

export interface ReadOptions {
  number?: string;
  follow?: boolean;
  stream?: string;
}

const MOST = 100;

const CALLED: Record<string, string> = { $logs: 'log lines', $errors: 'errors' };

/** `sluice events EMITTER`, `sluice logs EMITTER`, `sluice errors EMITTER` */
export const events = (session: Session, text: string, options: ReadOptions): Promise<void> => readEvents(session, text, options);
export const logs = (session: Session, text: string, options: ReadOptions): Promise<void> =>
  readEvents(session, text, { ...options, stream: '$logs' });
export const errors = (session: Session, text: string, options: ReadOptions): Promise<void> =>
  readEvents(session, text, { ...options, stream: '$errors' });

/** The last events of a stream, oldest first, then those that follow. */
async function readEvents(session: Session, text: string, { number = '10', follow = false, stream }: ReadOptions): Promise<void> {
  const limit = countOption(number, 0, MOST);
  const emitter = await findEmitter(session.sluice, text);
  const lineOf = (event: EventSummary): string => {
    const line = eventText(event, session.format);
    return session.format === 'table' && event.metadata.name === '$errors' ? shortStack(line) : line;
  };
  const last = await lastEvents(session.sluice, emitter, Math.max(limit, 1), stream);
  const shown = last.slice(0, limit).reverse();
  if (limit > 0 && shown.length === 0) session.note(await emptyText(session, emitter, stream));
  if (!follow && ['json', 'yaml'].includes(session.format)) return session.print(itemText(shown, session.format));
  for (const event of shown) session.printStyled(lineOf(event));
  if (!follow) return;
  session.endWithReader();
  const following = session.sluice.events(emitter, {
    eventName: stream,
    after: last[0]?.id ?? '0-0',
    parse: parseExactly,
    onState: connectionNotes(session),
    onGap: () => session.warn('only the last 100 events are kept: there may have been more'),
  });
  for await (const event of following) await session.printNext(lineOf(event));
}

async function emptyText({ sluice }: Session, emitter: string, stream: string | undefined): Promise<string> {
  const others = await otherStreams(sluice, emitter, stream);
  const isAlone = others === '' && (stream === undefined || stream === '*');
  return `no ${CALLED[stream ?? ''] ?? (isAlone ? 'events' : `events on ${streamText(stream)}`)} yet${others}`;
}

/** Newest first, whole. */
export async function lastEvents(sluice: SluiceClient, id: string, limit: number, event_name: string | undefined): Promise<EventSummary[]> {
  const request = { path: { id }, query: { event_name, limit, expand: 'event' }, parseAs: 'text' as const };
  const text: unknown = await (id.startsWith('p_') ? sluice.listWorkflowEvents(request) : sluice.listSourceEvents(request));
  return (parseExactly(text as string) as { data: EventSummary[] }).data;
}

/** Notes each change between connected and not connected, for `onState`. */
export function connectionNotes(session: Session, what = ''): (state: { connected: boolean; reason?: string }) => void {
  let wasConnected: boolean | undefined;
  return ({ connected, reason }) => {
    if (connected && wasConnected === false) session.note(`connected again${what}; nothing that is still stored was missed`);
    if (!connected && wasConnected !== false) session.warn(`not connected${what}: ${reason}; retrying`);
    wasConnected = connected;
  };
}

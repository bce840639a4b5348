import type { SluiceClient } from '@sluice/client';

/** The API accepts an empty name, too. */
const DEFAULT = 'default';
const EVERY = '*';
/** An emitter may have a thousand. */
const MOST_NAMED = 5;

/** The stream as a remark calls it. */
export const streamText = (stream = DEFAULT): string =>
  stream === DEFAULT ? 'the default stream' : stream === EVERY ? 'any stream' : `the stream ${stream}`;

/** The end of a remark that a stream has no events: it names the others that have some, and the option that reads them. Empty if there are none. */
export async function otherStreams(sluice: SluiceClient, emitterId: string, stream?: string): Promise<string> {
  return hint(await streamsOf(sluice, emitterId), stream);
}

/** The remark that other streams have events but this one has none, for a command that waits for new ones. Undefined otherwise. */
export async function emptyStreamNote(sluice: SluiceClient, emitterId: string, stream = DEFAULT): Promise<string | undefined> {
  const streams = await streamsOf(sluice, emitterId);
  const others = streams.includes(stream) ? '' : hint(streams, stream);
  return others && `no events on ${streamText(stream)} yet${others}`;
}

function hint(streams: string[], stream = DEFAULT): string {
  const others = streams.filter((name) => name !== stream);
  // `$errors` and `$logs` have commands
  if (others.length === 0 || stream === EVERY || stream.startsWith('$')) return '';
  const more = others.length > MOST_NAMED ? ` and ${others.length - MOST_NAMED} more` : '';
  return `; there are events on ${others.slice(0, MOST_NAMED).join(', ')}${more}: --stream ${others[0]} chooses one, --stream '*' all`;
}

/** The names of the default stream and the custom ones, if they have events. It only serves remarks, so it never fails. */
async function streamsOf(sluice: SluiceClient, id: string): Promise<string[]> {
  try {
    const { data } = await (id.startsWith('p_')
      ? sluice.listWorkflowStreams({ path: { id } })
      : sluice.listSourceStreams({ path: { id } }));
    return data.map(({ event_name }) => event_name || DEFAULT).filter((name) => !name.startsWith('$'));
  } catch {
    return [];
  }
}

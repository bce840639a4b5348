/** A frame of Server-Sent Events: an event with its id, or a comment. */
export type Frame = { id: string | undefined; data: string } | { comment: string };

/** Splits a stream of text into the frames of Server-Sent Events (WHATWG HTML, section 9.2.6). */
export async function* framesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  const decoder = new TextDecoder();
  let [rest, data, id]: [string, string[], string | undefined] = ['', [], undefined];
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { id, data: data.join('\n') };
        [data, id] = [[], undefined];
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === '') yield { comment: value };
      else if (field === 'data') data.push(value);
      else if (field === 'id') id = value;
    }
  }
}

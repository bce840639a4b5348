/** A frame of Server-Sent Events: an event with its id, or a comment. */
export type Frame = { id: string | undefined; data: string } | { comment: string };

/** Splits a stream of text into the frames of Server-Sent Events (WHATWG HTML, section 9.2.6). */
export async function* framesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Frame> {
  let [data, id]: [string[], string | undefined] = [[], undefined];
  for await (const line of linesOf(stream)) {
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

/** The lines that have ended. Searches each part of the text once: a line may consist of thousands. */
async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let [line, last] = ['', ''];
  for await (const bytes of stream) {
    const text = decoder.decode(bytes, { stream: true });
    // the second half of a line end
    const rest = last === '\r' && text.startsWith('\n') ? text.slice(1) : text;
    const [end = '', ...lines] = rest.split(/\r\n|\n|\r/);
    line += end;
    for (const next of lines) {
      yield line;
      line = next;
    }
    last = text.at(-1) ?? last;
  }
}

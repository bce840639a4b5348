const LINE_END = /\r\n|\r|\n/;

/** An event as Server-Sent Events write it. The receiver joins the lines of `data` by \n, which in JSON is only ever space between tokens. */
export function eventFrame(id: string, json: string): Buffer {
  const data = LINE_END.test(json) ? json.split(LINE_END).join('\ndata: ') : json;
  return Buffer.from(`id: ${id}\ndata: ${data}\n\n`);
}

/** What receivers skip. */
export const commentFrame = (text: string): Buffer => Buffer.from(`: ${text}\n\n`);

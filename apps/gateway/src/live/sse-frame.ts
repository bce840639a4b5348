const LINE_END = /\r\n|\r|\n/;

/** An event as a frame of Server-Sent Events. The client joins the lines of `data` by \n, which in JSON can only be white space between tokens. */
export function eventFrame(id: string, json: string): Buffer {
  const data = LINE_END.test(json) ? json.split(LINE_END).join('\ndata: ') : json;
  return Buffer.from(`id: ${id}\ndata: ${data}\n\n`);
}

/** A comment, which clients ignore. */
export const commentFrame = (text: string): Buffer => Buffer.from(`: ${text}\n\n`);

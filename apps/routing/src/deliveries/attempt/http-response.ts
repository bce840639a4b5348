import { MAX_INFORMATIONAL } from '#egress';

/** How much of a response's body is kept. */
const KEPT_BYTES = 1024;
/** How much of a response's body is read at most. */
const READ_BYTES = 64 * 1024;
/** How much of a connection a response may use: its body in chunks with their extensions, and headers. */
const RECEIVED_BYTES = 3 * READ_BYTES;
/** The status line and the headers, as Node limits them. */
const HEAD_BYTES = 16 * 1024;
/** A line that gives the size of a chunk, or a trailer. */
const LINE_BYTES = 16 * 1024;

/** Why a response cannot be read, in words for the webhook's owner. */
export class BadResponse extends Error {
  override readonly name = 'BadResponse';
}

const NOT_HTTP = 'the response is not valid HTTP';
const TOO_MANY_HEADERS = 'the response has too many headers';

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?=[ \r]|$)/;
/** Some servers end lines with LF alone (RFC 9112, 2.2). */
const HEAD_END = /\r?\n\r?\n/g;
const FOLDED_LINE = /\r?\n[ \t]+/g;
const CHUNK_SIZE = /^([0-9a-f]{1,12})[ \t]*(?:;|$)/i;
const EMPTY = Buffer.alloc(0);
const decoder = new TextDecoder();

/**
 * Reads the response to one POST from its connection, as far as a delivery needs it: the status, some headers and the beginning of the body (RFC 9112).
 * A response whose head is valid is one with that status, whatever the rest is; what cannot be read of it only prevents that the connection is used again.
 */
export class HttpResponse {
  /** Of the final response, once its head has arrived. */
  status: number | undefined = undefined;
  retryAfter: string | undefined = undefined;
  /** No more is read. */
  isComplete = false;
  /** Whether another request may follow on the connection when the response is complete. */
  keepsConnection = false;
  /** For how long the receiver keeps an idle connection, in ms, if it says so. */
  keepAliveMs: number | undefined = undefined;

  /** Whether the receiver has begun to respond. */
  hasBegun = false;

  private framing: 'head' | 'length' | 'chunks' | 'close' = 'head';
  private received = 0;
  private informational = 0;
  /** Of a head, or of a line between chunks, that is not complete. */
  private text = '';
  private chunk: 'size' | 'data' | 'end' | 'trailers' = 'size';
  /** How much of the body or of the chunk has not arrived. */
  private missing = 0;
  private read = 0;
  private kept = EMPTY;

  /** The beginning of the body as text. Invalid UTF-8 and NUL, which PostgreSQL's JSON does not accept, are replaced. */
  get body(): string {
    return this.kept.length === 0 ? '' : decoder.decode(this.kept).replaceAll('\0', '\uFFFD');
  }

  /** Reads what has arrived. Throws BadResponse if the response has no valid status. */
  take(bytes: Buffer): void {
    this.received += bytes.length;
    const begun = this.hasBegun ? bytes : withoutLineBreaks(bytes);
    if (begun.length > 0) this.hasBegun = true;
    const rest = this.framing === 'head' ? this.takeHeads(begun) : begun;
    if (this.isComplete) {
      // more than the response: the next one would begin with it
      if (rest.length > 0) this.keepsConnection = false;
    } else if (this.framing === 'length') this.takeLength(rest);
    else if (this.framing === 'chunks') this.takeChunks(rest);
    else if (this.framing === 'close') this.keep(rest);
    if (this.isComplete || this.received <= RECEIVED_BYTES) return;
    if (this.status === undefined) throw new BadResponse(TOO_MANY_HEADERS);
    this.endEarly();
  }

  /** Returns what follows the head of the final response. */
  private takeHeads(bytes: Buffer): Buffer {
    for (let rest = bytes; ;) {
      const before = this.text.length;
      this.text += rest.toString('latin1', 0, HEAD_BYTES);
      // the end may have begun in the last three characters
      HEAD_END.lastIndex = Math.max(0, before - 3);
      const end = HEAD_END.exec(this.text);
      if (!end) {
        if (!'HTTP/1.'.startsWith(this.text.slice(0, 7))) throw new BadResponse(NOT_HTTP);
        if (this.text.length >= HEAD_BYTES) throw new BadResponse(TOO_MANY_HEADERS);
        return EMPTY;
      }
      const head = this.text.slice(0, end.index);
      this.text = '';
      rest = rest.subarray(end.index + end[0].length - before);
      if (this.takeHead(head)) return rest;
    }
  }

  /** Returns whether it belongs to the final response. */
  private takeHead(head: string): boolean {
    const [first, ...lines] = head.replace(FOLDED_LINE, ' ').split('\n');
    const [, minor, digits] = STATUS_LINE.exec(first!) ?? [];
    if (digits === undefined) throw new BadResponse(NOT_HTTP);
    const status = Number(digits);
    if (status === 101) throw new BadResponse('the receiver returned 101 Switching Protocols, which was not requested');
    if (status < 200) {
      if (++this.informational > MAX_INFORMATIONAL) throw new BadResponse('too many informational responses');
      return false;
    }
    this.takeHeaders(status, lines);
    if (minor === '0') this.keepsConnection = false;
    this.status = status;
    return true;
  }

  private takeHeaders(status: number, lines: string[]): void {
    let length: string | undefined;
    let encoding: string | undefined;
    this.keepsConnection = true;
    for (const line of lines) {
      const colon = line.indexOf(':');
      if (colon < 1) throw new BadResponse(NOT_HTTP);
      const value = line.slice(colon + 1).trim();
      switch (line.slice(0, colon).trimEnd().toLowerCase()) {
        case 'content-length':
          if (!/^\d{1,15}$/.test(value) || (length !== undefined && length !== value)) throw new BadResponse(NOT_HTTP);
          length = value;
          break;
        case 'transfer-encoding':
          encoding = encoding === undefined ? value : `${encoding}, ${value}`;
          break;
        case 'connection':
          if (/(^|,)\s*close\s*(,|$)/i.test(value)) this.keepsConnection = false;
          break;
        case 'keep-alive':
          this.keepAliveMs = secondsOf(value);
          break;
        case 'retry-after':
          this.retryAfter = value;
      }
    }
    this.frame(status, length, encoding);
  }

  private frame(status: number, length: string | undefined, encoding: string | undefined): void {
    if (status === 204 || status === 304) {
      this.isComplete = true;
      // some servers send the body that it must not have
      if (encoding !== undefined || (status === 204 && Number(length ?? 0) > 0)) this.keepsConnection = false;
    } else if (encoding !== undefined) {
      this.framing = /(^|,)\s*chunked$/i.test(encoding) ? 'chunks' : 'close';
      // the receiver and a proxy may understand it differently
      if (length !== undefined || this.framing === 'close') this.keepsConnection = false;
    } else if (length !== undefined) {
      this.framing = 'length';
      this.missing = Number(length);
    } else {
      this.framing = 'close';
      this.keepsConnection = false;
    }
  }

  private takeLength(bytes: Buffer): void {
    this.keep(bytes.length <= this.missing ? bytes : bytes.subarray(0, this.missing));
    if (bytes.length > this.missing) this.endEarly();
    this.missing -= bytes.length;
    if (this.missing === 0) this.isComplete = true;
  }

  private takeChunks(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      if (this.isComplete) return this.endEarly();
      if (this.chunk === 'data') {
        const part = bytes.subarray(at, at + this.missing);
        this.keep(part);
        at += part.length;
        this.missing -= part.length;
        if (this.missing === 0) this.chunk = 'end';
      } else {
        const end = bytes.indexOf(0x0a, at);
        this.text += bytes.toString('latin1', at, end === -1 ? bytes.length : end);
        if (this.text.length > LINE_BYTES) return this.endEarly();
        if (end === -1) return;
        at = end + 1;
        const line = this.text.trimEnd();
        this.text = '';
        this.takeLine(line);
      }
    }
  }

  private takeLine(line: string): void {
    if (this.chunk === 'trailers') {
      if (line === '') this.isComplete = true;
    } else if (this.chunk === 'end') {
      this.chunk = 'size';
      if (line !== '') this.endEarly();
    } else {
      const [, size] = CHUNK_SIZE.exec(line) ?? [];
      if (size === undefined) return this.endEarly();
      this.missing = parseInt(size, 16);
      this.chunk = this.missing === 0 ? 'trailers' : 'data';
    }
  }

  private keep(part: Buffer): void {
    if (this.kept.length < KEPT_BYTES) this.kept = Buffer.concat([this.kept, part.subarray(0, KEPT_BYTES - this.kept.length)]);
    this.read += part.length;
    if (this.read > READ_BYTES) this.endEarly();
  }

  /** The rest is not read, so the connection cannot be used again. */
  private endEarly(): void {
    this.isComplete = true;
    this.keepsConnection = false;
  }
}

/** Some servers end the body of the response before with a line break that its length does not count. */
export function withoutLineBreaks(bytes: Buffer): Buffer {
  let at = 0;
  while (bytes[at] === 0x0d || bytes[at] === 0x0a) at += 1;
  return at === 0 ? bytes : bytes.subarray(at);
}

/** `timeout=5, max=100` is 5000 ms. */
function secondsOf(keepAlive: string): number | undefined {
  const [, seconds] = /(?:^|[,;])\s*timeout\s*=\s*(\d{1,9})/i.exec(keepAlive) ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

export interface ConnectRequest {
  host: string;
  port: number;
  /** Bytes that came behind the head */
  rest: Buffer;
}

export const headBytes = 1024;
const headEnd = '\r\n\r\n';

/**
 * Parses a guest's request to its proxy: one `CONNECT host:port`, nothing else of HTTP.
 * @returns the request, `more` when the head is not complete, `bad` when it is malformed
 */
export function readConnectRequest(bytes: Buffer): ConnectRequest | 'more' | 'bad' {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return bytes.length > headBytes ? 'bad' : 'more';
  if (end > headBytes) return 'bad';
  const [line] = bytes.toString('latin1', 0, end).split('\r\n');
  const match = /^CONNECT (\[[0-9a-f:.]+\]|[\w.-]{1,253}):(\d{1,5}) HTTP\/1\.1$/i.exec(line!);
  if (!match) return 'bad';
  const port = Number(match[2]);
  // net.connect throws on an invalid port
  if (port < 1 || port > 65535) return 'bad';
  return { host: match[1]!, port, rest: bytes.subarray(end + headEnd.length) };
}

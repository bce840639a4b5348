import { maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { lingerUntilClosed } from './http-connections.js';

/** An error of Node's HTTP server: it could not read a request. */
export interface ClientError extends Error {
  code?: string;
  /** The parser's description of the error. */
  reason?: string;
  /** The bytes in which the parser found the error. */
  rawPacket?: unknown;
}

/** The socket, with the response that Node is writing to it. */
type ServerSocket = Socket & { _httpMessage?: ServerResponse | null };

/** How a server describes an error to the client. */
type DescribeError = (status: number, detail: string) => { headers: Record<string, string>; body: string };

/**
 * Responds to a request that Node could not read, and closes the connection. The server's framework does not know the request, so the response is
 * written to the socket as text:
 *
 *   the request in progress has arrived ─► its response is sent, and nothing else: the error is in what follows it
 *   its response has begun, or its client has closed the connection ─► nothing is sent
 */
export function respondToClientError(error: ClientError, socket: ServerSocket, describe: DescribeError): void {
  // the client is still sending after the response
  if (socket.writableEnded) return;
  const inProgress = socket._httpMessage;
  const hasArrived = inProgress?.req.complete === true;
  const hasLeft = error.code === 'ECONNRESET' || !socket.writable || (hasArrived && socket.readableEnded);
  if (hasLeft || (inProgress?.headersSent && !hasArrived)) return void socket.destroy(error);
  if (inProgress && hasArrived) return closeAfter(inProgress, socket);
  const { status, detail } = problemOfClientError(error);
  const { headers, body } = describe(status, detail);
  const all = { date: new Date().toUTCString(), connection: 'close', ...headers, 'content-length': Buffer.byteLength(body) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  // the parser of a request that came too slowly still works: whatever follows would be executed
  if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') lingerUntilClosed(socket);
  else socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

/** Closes the connection after the response. It may be called for each packet that follows the request. */
function closeAfter(response: ServerResponse, socket: Socket): void {
  if (!response.shouldKeepAlive) return;
  // Node sends `Connection: close`, unless the headers have been sent
  response.shouldKeepAlive = false;
  if (response.headersSent) response.once('finish', () => socket.destroySoon());
}

const REQUEST_LINE = /^[!#$%&'*+.^_`|~\w-]+ \S+ HTTP\/1\.[01]\r?\n/;

function problemOfClientError({ code, reason, rawPacket }: ClientError): { status: number; detail: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, detail: `the URL and the headers must be at most ${maxHeaderSize} bytes together` };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, detail: 'the chunk extensions of the body are too large' };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, detail: 'the request was not received in time' };
    default:
      // Node's parser knows only some methods
      if (code === 'HPE_INVALID_METHOD' && Buffer.isBuffer(rawPacket) && REQUEST_LINE.test(rawPacket.toString('latin1')))
        return { status: 501, detail: 'the method of the request is unknown' };
      return { status: 400, detail: `the request is not valid HTTP${reason === undefined ? '' : `: ${reason}`}` };
  }
}

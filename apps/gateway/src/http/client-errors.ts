import { randomUUID } from 'node:crypto';
import { maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Log } from '#observability';
import { lingerUntilClosed } from '#http-server';
import { PROBLEM_TYPE, problemBody } from './problem.js';
import { SAFE_HEADERS } from './safe-headers.js';

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

/**
 * Responds to a request that Node could not read, and closes the connection. Fastify does not know the request, so the response is written to the
 * socket as text. Nothing is written if the socket is closed, or if another response has begun.
 */
export function respondToClientError(error: ClientError, socket: ServerSocket, log: Log): void {
  // the client is still sending after the response
  if (socket.writableEnded) return;
  if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?.headersSent) return void socket.destroy(error);
  const problem = problemOfClientError(error);
  const requestId = randomUUID();
  const body = `${JSON.stringify(problemBody(problem, requestId))}\n`;
  const headers = {
    date: new Date().toUTCString(),
    connection: 'close',
    ...SAFE_HEADERS,
    'x-request-id': requestId,
    'content-type': PROBLEM_TYPE,
    'content-length': Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  // the parser of a request that came too slowly still works: whatever follows would be executed
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') socket.once('finish', () => socket.destroy());
  else lingerUntilClosed(socket);
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n${body}`);
  log.debug({ request_id: requestId, status: problem.status, err: error }, 'request.unreadable');
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

import { connect, isIP, type Socket } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { AddressGuard, ResolvedAddress } from './address-guard.js';
import { withoutBrackets } from './ip-text.js';

interface GuardedAgentOptions extends Omit<Agent.Options, 'connect'> {
  /** The options of undici's connector: `timeout`, `ca`, `rejectUnauthorized`, … */
  connect?: buildConnector.BuildOptions;
  /** How many bytes of a connection one response may use, with everything that is not its body: status lines, headers, the framing of chunks. */
  maxResponseBytes: number;
}

/**
 * An idle connection is closed after this time at the latest. Without this limit, a server could ask for ten minutes, and those of a few thousand servers
 * would use up the files that the process can open.
 */
export const MAX_IDLE_MS = 10_000;

/**
 * An undici agent that connects only to addresses that the guard allows. It checks once per connection; a reused connection is not checked again.
 * A refusal rejects the request with `EgressRefused`, and a response that uses too many bytes with `ResponseTooLong`. HTTP/1.1 without pipelining.
 */
export function guardedAgent(guard: AddressGuard, { connect, maxResponseBytes, ...options }: GuardedAgentOptions): Agent {
  const dial = guardedConnector(guard, connect);
  return new Agent({
    keepAliveMaxTimeout: MAX_IDLE_MS,
    ...options,
    connect: (target, callback) =>
      dial(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null);
        limitResponses(socket, maxResponseBytes);
        callback(null, socket);
      }),
  });
}

/** Informational responses (1xx) that a server may send before the final one; each caller of an agent counts them. */
export const MAX_INFORMATIONAL = 100;

/** The other end has sent more than a response may need. */
class ResponseTooLong extends Error {
  override readonly name = 'ResponseTooLong';
  readonly code = 'RESPONSE_TOO_LONG';

  constructor() {
    super('the response is too long');
  }
}

/**
 * Counts the bytes that the connection has received since the last request. A receiver's server may send informational responses or extensions of
 * chunks without end, which no limit of a body counts.
 */
function limitResponses(socket: Socket, maxBytes: number): void {
  let received = 0;
  let limit = maxBytes;
  let isNewRequest = false;
  socket.on('readable', () => {
    if (isNewRequest) {
      isNewRequest = false;
      limit = received + maxBytes;
    }
    received = socket.bytesRead;
    if (received > limit) socket.destroy(new ResponseTooLong());
  });
  const { write } = socket;
  socket.write = function (this: Socket, ...written: Parameters<typeof write>) {
    isNewRequest = true;
    return write.apply(this, written);
  } as typeof write;
}

const tcpSockets = new WeakMap<Socket, Socket>();

/** The TCP socket below a TLS socket of `guardedConnector`, which cannot be reset itself; otherwise the socket. */
export const tcpSocket = (socket: Socket): Socket => tcpSockets.get(socket) ?? socket;

/** Opens sockets like undici's connector, and calls the guard: it dials the returned addresses one after another. TLS still checks the host name. */
export function guardedConnector(guard: AddressGuard, options: buildConnector.BuildOptions = {}): buildConnector.connector {
  const dial = buildConnector({ allowH2: false, ...options });
  return (target, callback) => {
    const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80);
    const name = withoutBrackets(target.hostname);
    // For a plain connection, the server name would only make undici resolve the address again
    const servername = target.protocol !== 'https:' || isIP(name) ? undefined : (target.servername ?? name);

    const dialNext = ([next, ...others]: ResolvedAddress[]): void => {
      const hostname = next!.address;
      const tcp = target.protocol === 'https:' ? connect(port, hostname) : undefined;
      dial({ ...target, hostname, servername, httpSocket: tcp }, (...[error, socket]) => {
        if (error === null) {
          if (tcp) tcpSockets.set(socket, tcp);
          callback(null, socket);
        } else if (others.length > 0 && isUnreachable(error)) dialNext(others);
        else callback(error, null);
      });
    };
    guard.resolve(name, port).then(
      ({ all }) => dialNext(all),
      (error: Error) => callback(error, null),
    );
  };
}

/** Only failures that are immediate: trying another address after a timeout would multiply the caller's limit. */
function isUnreachable(error: Error): boolean {
  return ['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '');
}

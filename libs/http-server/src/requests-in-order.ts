import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Handler = (this: Server, request: IncomingMessage, response: ServerResponse) => void;

/** A connection is not read while as many of its requests wait. At most one more packet of 64 KiB has been read by then. */
const MAX_WAITING = 100;
/** Of all connections: they must not fill the memory. */
const MAX_WAITING_IN_ALL = 10_000;

interface Limits {
  ofConnection: number;
  inAll: number;
}

/**
 * Handles the requests of each connection one after another, as RFC 9112, 9.3.2 demands unless all of them are safe. Node would handle pipelined requests
 * at once: a client that sends thousands in a packet would have as many turns of the event loop as thousands of others. Call it after the server has
 * its handler of requests.
 *
 *   too many wait in all connections together ─► the connection that sends one more is closed
 */
export function handleInOrder(server: Server, limits: Limits = { ofConnection: MAX_WAITING, inAll: MAX_WAITING_IN_ALL }): void {
  const connections = new Map<Socket, Turns>();
  let waiting = 0;
  const count = (change: number): number => (waiting += change);
  const handlers = server.listeners('request') as Handler[];
  server.removeAllListeners('request');
  for (const handler of handlers) {
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      let turns = connections.get(socket);
      if (!turns) {
        connections.set(socket, (turns = new Turns(socket, limits, count)));
        socket.once('close', () => connections.delete(socket));
      }
      turns.take(response, () => handler.call(server, request, response));
    });
  }
}

/** The requests of a connection: one in progress, and those that wait for their turns. */
class Turns {
  private isBusy = false;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly socket: Socket,
    private readonly limits: Limits,
    private readonly count: (change: number) => number,
  ) {
    // Node resumes it with each response
    socket.on('resume', () => this.isFull && socket.pause());
    socket.once('close', () => this.drop());
  }

  take(response: ServerResponse, handle: () => void): void {
    // a response has closed the connection: this one would get none
    if (!this.socket.writable) return void this.socket.destroy();
    const begin = (): void => {
      this.isBusy = true;
      response.once('close', () => this.next());
      handle();
    };
    if (!this.isBusy) return begin();
    this.waiting.push(begin);
    if (this.count(1) > this.limits.inAll) return void this.socket.destroy();
    if (this.isFull) this.socket.pause();
  }

  private get isFull(): boolean {
    return this.waiting.length >= this.limits.ofConnection;
  }

  private next(): void {
    this.isBusy = false;
    // the response has closed the connection: those that wait would get none
    if (!this.socket.writable) return this.drop();
    const wasFull = this.isFull;
    const begin = this.waiting.shift();
    if (!begin) return;
    this.count(-1);
    if (wasFull && !this.isFull) this.socket.resume();
    begin();
  }

  private drop(): void {
    this.count(-this.waiting.length);
    this.waiting = [];
  }
}

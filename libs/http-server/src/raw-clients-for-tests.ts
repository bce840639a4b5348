import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** Clients that send and read bytes, and nothing by themselves. */
export class RawClients {
  private readonly sockets: Socket[] = [];

  /** Connects to a server that listens on 127.0.0.1. */
  async connect(server: Server): Promise<Socket> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
    this.sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  }

  /** Closes all connections at once. */
  destroy(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}

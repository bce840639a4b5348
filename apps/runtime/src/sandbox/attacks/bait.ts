import { randomBytes } from 'node:crypto';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MockInternet } from '../egress/mock-internet-for-tests.js';

export interface Bait {
  port: number;
  storePort: number;
  publicStorePort: number;
  unixSocket: string;
  abstractSocket: string;
  reached(internet: MockInternet): string[];
  remove(): void;
}

/** Servers and signal handlers of this process that record what reached them. */
export async function setBait(): Promise<Bait> {
  const priority = getPriority();
  const reached = new Set<string>();
  const id = randomBytes(4).toString('hex');
  const unixSocket = join(tmpdir(), `sluice-bait-${id}`);
  const abstractSocket = `sluice-bait-${id}`;
  const listen = (what: string, where: { port: number; host: string } | { path: string }) =>
    new Promise<Server>((resolve, reject) => {
      const server = createServer((socket) => {
        reached.add(what);
        socket.destroy();
      });
      server.on('error', reject);
      server.listen(where, () => resolve(server));
    });
  const tcp = await listen('TCP', { port: 0, host: '127.0.0.1' });
  const store = await listen('store', { port: 0, host: '127.0.0.1' });
  const publicStore = await listen('store', { port: 0, host: '127.0.0.1' });
  const servers = [
    tcp,
    store,
    publicStore,
    await listen('unix socket', { path: unixSocket }),
    await listen('abstract socket', { path: `\0${abstractSocket}` }),
  ];
  chmodSync(unixSocket, 0o777);
  const onSignal = (): void => void reached.add('signal');
  process.on('SIGWINCH', onSignal);
  return {
    port: (tcp.address() as AddressInfo).port,
    storePort: (store.address() as AddressInfo).port,
    publicStorePort: (publicStore.address() as AddressInfo).port,
    unixSocket,
    abstractSocket,
    reached: (internet) => [
      ...reached,
      ...(internet.forbiddenConnections() > 0 ? ['forbidden port'] : []),
      ...('polluted' in {} || 'id' in {} ? ['Object.prototype'] : []),
      ...(getPriority() === priority ? [] : ['priority']),
    ],
    remove: () => {
      for (const server of servers) server.close();
      process.off('SIGWINCH', onSignal);
      rmSync(unixSocket, { force: true });
    },
  };
}

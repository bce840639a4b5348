import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBroker } from '../stores/broker.mjs';
import { removeAtEnd } from '../shell/keeper.mjs';
import { freePort } from '../shell/ports.mjs';
import { startPostgres } from '../stores/postgres.mjs';

/**
 * A broker and a database server for one test run: on free ports, in a temporary folder. They are removed afterwards, even if the
 * runner is killed.
 *
 * @returns {Promise<{ databaseUrl: string, brokers: string, folder: string, stop: () => Promise<void> }>}
 */
export async function startTestStack() {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'));
  // PostgreSQL may run as another user, who must be able to reach its folder.
  await chmod(folder, 0o711);
  removeAtEnd(folder);
  const started = await Promise.allSettled([
    startBroker({ dir: join(folder, 'broker'), port: await freePort() }),
    startPostgres({ dir: join(folder, 'postgres'), port: await freePort(), fast: true }),
  ]);
  const stop = async () => {
    await Promise.all(started.map((service) => service.status === 'fulfilled' && service.value.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  const [broker, postgres] = started;
  if (broker.status === 'rejected' || postgres.status === 'rejected') {
    await stop();
    throw started.find((service) => service.status === 'rejected')?.reason;
  }
  return { databaseUrl: postgres.value.url, brokers: broker.value.brokers, folder, stop };
}

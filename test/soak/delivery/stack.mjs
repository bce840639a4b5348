import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { appEnvironment, startApp } from '../../../scripts/lib/apps.mjs';
import { startBroker } from '../../../scripts/lib/broker.mjs';
import { removeAtEnd } from '../../../scripts/lib/keeper.mjs';
import { node24 } from '../../../scripts/lib/node24.mjs';
import { inRoot } from '../../../scripts/lib/paths.mjs';
import { freePort } from '../../../scripts/lib/ports.mjs';
import { startPostgres } from '../../../scripts/lib/postgres.mjs';
import { startServiceProcess } from '../../../scripts/lib/service-process.mjs';
import { ensureBrokerJars } from '../../../scripts/lib/setup.mjs';
import { supervise } from '../../../scripts/lib/supervise.mjs';

/**
 * A broker, a database server, replicas of the routing and a receiver of webhooks, each of which is started again when it dies. Broker and
 * database are as durable as in production. Everything goes when the process ends, however it ends.
 *
 * @param {{ replicas: number, log: (line: string) => void }} options log: what the routing says
 */
export async function startDeliveryStack({ replicas, log }) {
  await ensureBrokerJars({ say: console.error });
  const folder = await mkdtemp(join(tmpdir(), 'sluice-soak-'));
  // PostgreSQL may have to run as another user, who must get through to its folder.
  await chmod(folder, 0o711);
  removeAtEnd(folder);
  const [brokerPort, controllerPort, postgresPort, receiverPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
  let [brokers, databaseUrl] = ['', ''];
  const broker = supervise({
    name: 'broker',
    launch: async () => {
      const started = await startBroker({ dir: join(folder, 'broker'), port: brokerPort, controllerPort });
      brokers = started.brokers;
      return started;
    },
  });
  const postgres = supervise({
    name: 'postgres',
    launch: async () => {
      const started = await startPostgres({ dir: join(folder, 'postgres'), port: postgresPort });
      databaseUrl = started.url;
      return started;
    },
  });
  await Promise.all([broker.start(), postgres.start()]);
  const arrivals = join(folder, 'arrivals');
  const receiver = supervise({
    name: 'receiver',
    launch: async () =>
      startServiceProcess({
        name: 'receiver',
        kind: 'app',
        command: node24(),
        args: [fileURLToPath(new URL('receiver-process.mjs', import.meta.url)), String(receiverPort), arrivals],
        spawn: { stdio: 'inherit' },
      }),
  });
  const env = {
    KAFKA_BROKERS: brokers,
    DATABASE_URL: databaseUrl,
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.1',
    SLUICE_LOG_LEVEL: 'info',
    // nothing is given up, and it ends soon
    SLUICE_RETRY_SCHEDULE: ['1s', '2s', ...Array.from({ length: 100 }, () => '4s')].join(','),
  };
  await promisify(execFile)(node24(), [inRoot('scripts/migrate.mjs')], { env: appEnvironment(env) });
  const routings = Array.from({ length: replicas }, (_, number) =>
    supervise({ name: `routing ${number}`, launch: async () => startApp({ app: 'routing', env, log: (_app, line) => log(line) }) }),
  );
  await Promise.all([receiver.start(), ...routings.map((routing) => routing.start())]);
  return {
    brokers,
    databaseUrl,
    broker,
    postgres,
    receiver,
    routings,
    /** The file in which the receiver notes what has arrived. */
    arrivals,
    receiverUrl: `http://127.0.0.1:${receiverPort}`,
    stop: async () => {
      await Promise.all([...routings, receiver].map((service) => service.stop()));
      await Promise.all([broker.stop(), postgres.stop()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

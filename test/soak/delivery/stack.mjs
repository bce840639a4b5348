import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runOurs, startOwnStores } from '../../../scripts/temporary/own-stores.mjs';
import { startApp } from '../../../scripts/processes/apps.mjs';
import { node24 } from '../../../scripts/setup/node24.mjs';
import { freePort } from '../../../scripts/shell/ports.mjs';
import { newSecretsKey } from '../../../scripts/shell/secrets-key.mjs';
import { startServiceProcess } from '../../../scripts/processes/service-process.mjs';
import { Supervisor } from '../../../scripts/processes/supervisor.mjs';

/** No delivery is given up, and a soak ends soon. */
export const RETRY_SCHEDULE = ['1s', '2s', ...Array.from({ length: 100 }, () => '4s')].join(',');

/**
 * Replicas of routing and a receiver of webhooks, with their own broker and database server. A process that dies is restarted.
 *
 * @param {{ replicas: number, log: (line: string) => void }} options log: receives the output of routing
 */
export async function startDeliveryStack({ replicas, log }) {
  const own = await startOwnStores();
  const receiverPort = await freePort();
  const arrivals = join(own.folder, 'arrivals');
  const receiver = new Supervisor({
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
    KAFKA_BROKERS: own.brokers,
    DATABASE_URL: own.databaseUrl,
    SLUICE_SECRETS_KEY: newSecretsKey(),
    SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.1',
    SLUICE_LOG_LEVEL: 'info',
    SLUICE_RETRY_SCHEDULE: RETRY_SCHEDULE,
  };
  await runOurs(env, 'dist/bundles/migrate.js');
  const routings = Array.from(
    { length: replicas },
    (_, number) =>
      new Supervisor({ name: `routing ${number}`, launch: async () => startApp({ app: 'routing', env, log: (_app, line) => log(line) }) }),
  );
  await Promise.all([receiver.start(), ...routings.map((routing) => routing.start())]);
  return {
    ...own,
    receiver,
    routings,
    /** The file to which the receiver writes its deliveries. */
    arrivals,
    receiverUrl: `http://127.0.0.1:${receiverPort}`,
    stop: async () => {
      await Promise.all([...routings, receiver].map((service) => service.stop()));
      await own.stop();
    },
  };
}

import { startApp } from '../../scripts/processes/apps.mjs';
import { Supervisor } from '../../scripts/processes/supervisor.mjs';
import { newSecretsKey } from '../../scripts/shell/secrets-key.mjs';
import { runOurs, startOwnStores } from '../../scripts/temporary/own-stores.mjs';

/**
 * The event store with its own broker and database server. A process that dies is restarted.
 *
 * @param {{ partitions: number, replicas?: number, log?: (line: string) => void }} options log: receives the output of the store
 */
export async function startStoreStack({ partitions, replicas = 1, log = console.error }) {
  const own = await startOwnStores();
  const secretsKey = newSecretsKey();
  const env = {
    KAFKA_BROKERS: own.brokers,
    DATABASE_URL: own.databaseUrl,
    SLUICE_LOG_LEVEL: 'warn',
    SLUICE_SECRETS_KEY: secretsKey,
    SLUICE_PARTITIONS: String(partitions),
  };
  await runOurs(env, 'scripts/migrate.mjs');
  const stores = Array.from(
    { length: replicas },
    (_, number) =>
      new Supervisor({
        name: `event-store ${number}`,
        launch: async () => startApp({ app: 'event-store', env, log: (_app, line) => log(line) }),
      }),
  );
  return {
    ...own,
    secretsKey,
    stores,
    stop: async () => {
      await Promise.all(stores.map((store) => store.stop()));
      await own.stop();
    },
  };
}

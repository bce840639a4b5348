import kafkajs, { AclOperationTypes, AclPermissionTypes, AclResourceTypes, type Admin, ResourcePatternTypes } from 'kafkajs';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type App, APPS } from '../../scripts/processes/apps.mjs';
import { loginProperties } from '../../scripts/stores/broker-properties.mjs';
import { startBroker } from '../../scripts/stores/broker.mjs';
import { node24 } from '../../scripts/setup/node24.mjs';
import { inRoot } from '../../scripts/shell/paths.mjs';
import { freePort } from '../../scripts/shell/ports.mjs';
import { startPostgres } from '../../scripts/stores/postgres.mjs';
import { newSecretsKey } from '../../scripts/shell/secrets-key.mjs';
import { makeTestCertificate } from '../../libs/testing/src/test-certificate.js';

/** A Kafka and a PostgreSQL as in a company: TLS, a login for each service, and only the permissions that `sluice kafka acls` prints. */
export interface SecuredStores {
  /** Bootstrap servers. */
  brokers: string;
  /** The file with the certificate of the authority. */
  caFile: string;
  /** The variables with which a service, or `migrate`, connects. */
  environment(user: App | 'migrate'): Record<string, string>;
  /** Those with which a user connects to Kafka. */
  kafkaLogin(user: App | 'migrate' | 'operator'): Record<string, string>;
  /** For the stories' own clients, which have all permissions. */
  client: kafkajs.KafkaConfig;
  /** Revokes a permission. */
  revoke(user: string, topic: string, operation: AclOperationTypes): Promise<void>;
  stop(): Promise<void>;
}

interface Grant {
  user: string;
  acls: { type: 'topic' | 'group'; name: string; pattern: 'literal' | 'prefix'; operations: string[] }[];
}

const run = promisify(execFile);

export async function startSecuredStores(): Promise<SecuredStores> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-secured-'));
  await chmod(folder, 0o711);
  const { key, cert } = makeTestCertificate(['localhost']);
  const [caFile, keyStore] = [join(folder, 'ca.crt'), join(folder, 'broker.pem')];
  await mkdir(folder, { recursive: true });
  await writeFile(caFile, cert);
  await writeFile(keyStore, key + cert, { mode: 0o600 });

  const password = (): string => randomBytes(18).toString('hex');
  const users = Object.fromEntries(
    ['admin', ...[...APPS, 'migrate', 'operator'].map((name) => `sluice-${name}`)].map((name) => [name, password()]),
  );
  const client: kafkajs.KafkaConfig = {
    brokers: [],
    ssl: { ca: cert },
    sasl: { mechanism: 'scram-sha-512', username: 'admin', password: users.admin! },
    logLevel: kafkajs.logLevel.NOTHING,
  };
  const [port, innerPort, databasePort] = [await freePort(), await freePort(), await freePort()];
  const [broker, postgres] = await Promise.all([
    startBroker({
      dir: join(folder, 'broker'),
      port,
      security: {
        users,
        client: client as never,
        properties: ({ controllerPort }) => securedProperties({ port, innerPort, controllerPort, keyStore, password: password() }),
      },
    }),
    startPostgres({ dir: join(folder, 'postgres'), port: databasePort, fast: true, tls: { cert, key } }),
  ]);
  client.brokers = [broker.brokers];
  const secretsKey = newSecretsKey();
  const databasePassword = new URL(postgres.url).password;
  const stop = async () => {
    await Promise.all([broker.stop(), postgres.stop()]);
    await rm(folder, { recursive: true, force: true });
  };

  const withAdmin = async (work: (admin: Admin) => Promise<unknown>) => {
    const admin = new kafkajs.Kafka(client).admin();
    await admin.connect();
    try {
      await work(admin);
    } finally {
      await admin.disconnect();
    }
  };
  const { stdout } = await run(node24(), [inRoot('scripts/kafka-acls.mjs'), '--format', 'json']);
  await withAdmin((admin) => admin.createAcls({ acl: (JSON.parse(stdout) as Grant[]).flatMap(aclEntries) }));

  const kafkaLogin: SecuredStores['kafkaLogin'] = (user) => ({
    KAFKA_BROKERS: broker.brokers,
    KAFKA_SECURITY_PROTOCOL: 'sasl_ssl',
    KAFKA_SASL_MECHANISM: 'scram-sha-512',
    KAFKA_SASL_USERNAME: `sluice-${user}`,
    KAFKA_SASL_PASSWORD: users[`sluice-${user}`]!,
    KAFKA_SSL_CA_LOCATION: caFile,
  });
  return {
    brokers: broker.brokers,
    caFile,
    client,
    stop,
    kafkaLogin,
    environment: (user) => ({
      SLUICE_SECRETS_KEY: secretsKey,
      ...kafkaLogin(user),
      DATABASE_URL: `postgres://postgres@localhost:${databasePort}/postgres?sslmode=verify-full&sslrootcert=${caFile}`,
      DATABASE_PASSWORD: decodeURIComponent(databasePassword),
    }),
    revoke: (user, topic, operation) =>
      withAdmin((admin) =>
        admin.deleteAcls({
          filters: [
            {
              resourceType: AclResourceTypes.TOPIC,
              resourceName: topic,
              resourcePatternType: ResourcePatternTypes.LITERAL,
              principal: `User:${user}`,
              host: '*',
              operation,
              permissionType: AclPermissionTypes.ALLOW,
            },
          ],
        }),
      ),
  };
}

const aclEntries = ({ user, acls }: Grant) =>
  acls.flatMap(({ type, name, pattern, operations }) =>
    operations.map((operation) => ({
      resourceType: type === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
      resourceName: name,
      resourcePatternType: pattern === 'prefix' ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
      principal: `User:${user}`,
      host: '*',
      operation: AclOperationTypes[operation.replace(/\B([A-Z])/g, '_$1').toUpperCase() as keyof typeof AclOperationTypes],
      permissionType: AclPermissionTypes.ALLOW,
    })),
  );

/** Clients log in over TLS; the broker connects to itself with a separate password. */
const securedProperties = (options: { port: number; innerPort: number; controllerPort: number; keyStore: string; password: string }) => {
  const { port, innerPort, controllerPort, keyStore, password } = options;
  return `
listeners=CLIENT://127.0.0.1:${port},INNER://127.0.0.1:${innerPort},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=CLIENT://localhost:${port},INNER://127.0.0.1:${innerPort}
listener.security.protocol.map=CLIENT:SASL_SSL,INNER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
${loginProperties({ brokerListener: 'INNER', clientListener: 'CLIENT', superUser: 'admin', password })}
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=${keyStore}
`;
};

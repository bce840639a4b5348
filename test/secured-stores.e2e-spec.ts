import { afterAll, beforeAll, expect, it } from '@jest/globals';
import kafkajs, { AclOperationTypes } from 'kafkajs';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type App, appEnvironment, APPS, startApp } from '../scripts/processes/apps.mjs';
import { commandOf } from '../scripts/setup/bundles.mjs';
import { node24 } from '../scripts/setup/node24.mjs';
import { freePort } from '../scripts/shell/ports.mjs';
import { makeTestCertificate } from '../libs/testing/src/test-certificate.js';
import { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { Receiver } from './support/receiver.js';
import { type SecuredStores, startSecuredStores } from './support/secured-stores.js';
import { needing } from './support/target.js';

const run = promisify(execFile);

const { describe } = needing('processes');

let stores: SecuredStores;
let ports: { http: string; endpoints: string };
const running: ReturnType<typeof startApp>[] = [];

const environment = (app: App | 'migrate', more: Record<string, string> = {}): Record<string, string> => ({
  ...stores.environment(app),
  SLUICE_HTTP_PORT: ports.http,
  SLUICE_ENDPOINTS_PORT: ports.endpoints,
  SLUICE_ALLOW_PRIVATE_HOSTS: '127.0.0.0/8,::1,localhost',
  SLUICE_STARTUP_TIMEOUT: '30s',
  ...more,
});

/** Starts an app; returns its fatal log lines once it has ended, and its exit code. */
async function failure(app: App, more: Record<string, string>): Promise<{ lines: string[]; code: number | null }> {
  const lines: string[] = [];
  const log = (_: string, line: string) => void (line.includes('"level":"fatal"') && lines.push((JSON.parse(line) as { msg: string }).msg));
  const process = startApp({ app, env: environment(app, more), log });
  const { code } = await process.exited;
  return { lines, code };
}

async function migrate(more: Record<string, string> = {}): Promise<{ code: number; output: string }> {
  const env = appEnvironment(environment('migrate', more));
  try {
    const { stdout } = await run(node24(), [commandOf('migrate')], { env });
    return { code: 0, output: stdout };
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string };
    return { code, output: stdout };
  }
}

beforeAll(async () => {
  ports = { http: String(await freePort()), endpoints: String(await freePort()) };
  stores = await startSecuredStores();
});
afterAll(async () => {
  await Promise.all(running.map((app) => app.stop()));
  await stores?.stop();
});

describe('Kafka with SASL_SSL, SCRAM and only the generated permissions, and PostgreSQL with verify-full', () => {
  it('lack their topics and schemas before sluice migrate, which a service reports in one line per store', async () => {
    const { lines, code } = await failure('catalog', { SLUICE_STARTUP_TIMEOUT: '1s' });
    expect(code).toBe(1);
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^gave up waiting for Kafka .*run `sluice migrate`/),
      expect.stringMatching(/^gave up waiting for PostgreSQL .*run `sluice migrate`/),
    ]);
  });

  it('can be migrated, and migrated again without a change', async () => {
    expect(await migrate()).toMatchObject({ code: 0, output: expect.stringContaining('topics.created') });
    expect(await migrate()).toEqual({
      code: 0,
      output: expect.stringMatching(/^[^\n]*"migrations":0,"topics":0,"msg":"migration.completed"\}\n$/),
    });
  });

  it('carry an event from a request at an endpoint to a webhook and into the store', async () => {
    const receiver = await Receiver.start();
    running.push(...APPS.map((app) => startApp({ app, env: environment(app) })));
    expect(await Promise.all(running.map((app) => app.ready))).toEqual(APPS.map(() => true));
    const cli = [commandOf('gateway-command'), 'account', 'create', '--email', 'someone@example.com', '--json'];
    const { stdout } = await run(node24(), cli, { env: appEnvironment(environment('gateway')) });
    const api = new Api(`http://127.0.0.1:${ports.http}/v1`, JSON.parse(stdout) as Api['account']);

    const source = await api.source(
      "export default { name: 'Secured', props: { http: '$.interface.http' }, run(e) { this.$emit({ got: e.body }) } };",
    );
    await api.subscribe(source.id, await api.webhook(`${receiver.url}hook`));
    const relay = await api.source("export default { name: 'Relay', run(e) { this.$emit({ relayed: e }) } };");
    await api.subscribe(source.id, relay.id);
    await fetch(source.configured_props.http.endpoint_url, { method: 'POST', body: 'x' });
    await eventually(() => expect(receiver.received.map(({ body }) => body)).toEqual([{ got: 'x' }]));
    await eventually(async () =>
      expect((await api.get(`/sources/${relay.id}/event_summaries`)).body.data).toMatchObject([{ event: { relayed: { got: 'x' } } }]),
    );
    expect((await api.delete(`/sources/${relay.id}/events`)).status).toBe(202);
    await eventually(async () => expect((await api.get(`/sources/${relay.id}/event_summaries`)).body.data).toEqual([]));
    expect((await api.delete(`/sources/${relay.id}`)).status).toBe(204);
    await receiver.close();
  });

  it('need only the permissions that sluice kafka acls prints, even for workflows and failures', async () => {
    const kafka = new kafkajs.Kafka(stores.client);
    const [producer, admin] = [kafka.producer(), kafka.admin()];
    await Promise.all([producer.connect(), admin.connect()]);
    // malformed events, workflows, runs and facts go to the dead-letter topics, which need permissions, too
    for (const topic of ['events', 'workflows', 'runtime.run.execute', 'catalog.emitter.changed'])
      await producer.send({ topic, messages: [{ key: 'nobody', value: 'no JSON' }] });
    const deadLetters = async (service: string) =>
      (await admin.fetchTopicOffsets(`${service}.dead-letter`)).reduce((sum, { offset }) => sum + Number(offset), 0);
    await eventually(async () =>
      expect(Object.fromEntries(await Promise.all(APPS.map(async (app) => [app, await deadLetters(app)])))).toEqual({
        gateway: 1,
        catalog: 1,
        routing: 2,
        'event-store': 2,
        runtime: 2,
      }),
    );
    await Promise.all([producer.disconnect(), admin.disconnect()]);
    expect(running.map((app) => app.child.exitCode)).toEqual(APPS.map(() => null));
  });
});

describe('a service ends with one line that names the cause', () => {
  it('a service ends if Kafka has another certificate authority', async () => {
    const other = `${stores.caFile}.other`;
    await writeFile(other, makeTestCertificate(['localhost']).cert);
    const { lines, code } = await failure('event-store', { KAFKA_SSL_CA_LOCATION: other });
    expect({ lines, code }).toEqual({ code: 1, lines: [expect.stringMatching(/TLS connection to Kafka .*KAFKA_SSL_CA_LOCATION/)] });
  });

  it('a service ends if the password for Kafka is wrong', async () => {
    const { lines, code } = await failure('event-store', { KAFKA_SASL_PASSWORD: 'wrong' });
    expect({ lines, code }).toEqual({ code: 1, lines: [expect.stringMatching(/^Kafka.* refuses the login.*KAFKA_SASL_PASSWORD/)] });
  });

  it('a service ends if PostgreSQL has another certificate authority', async () => {
    const { DATABASE_URL = '' } = stores.environment('event-store');
    const { lines, code } = await failure('event-store', { DATABASE_URL: DATABASE_URL.replace(/sslrootcert=.*/, 'x=1') });
    expect({ lines, code }).toEqual({ code: 1, lines: [expect.stringMatching(/TLS connection to PostgreSQL fails.*sslrootcert/)] });
  });

  it('a service ends if the password for PostgreSQL is wrong', async () => {
    const { lines, code } = await failure('event-store', { DATABASE_PASSWORD: 'wrong' });
    expect({ lines, code }).toEqual({ code: 1, lines: [expect.stringMatching(/^PostgreSQL refuses the login.*DATABASE_PASSWORD/)] });
  });

  it('a service ends if Kafka does not grant it a permission', async () => {
    await stores.revoke('sluice-event-store', 'events', AclOperationTypes.READ);
    const { lines, code } = await failure('event-store', {});
    expect({ lines, code }).toEqual({ code: 1, lines: [expect.stringMatching(/^Kafka denies access.*sluice kafka acls/)] });
  });
});

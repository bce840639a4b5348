import { describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml';
import { inRoot } from './shell/paths.mjs';
import { brokerProperties } from './stores/broker-properties.mjs';

const APPS = ['gateway', 'catalog', 'routing', 'event-store', 'runtime'];

const file = readFileSync(inRoot('docker-compose.yml'), 'utf8');
/** @type {{ services: Record<string, any>, networks: Record<string, any> }} */
const compose = /** @type {any} */ (load(file, { schema: CORE_SCHEMA.withTags([mergeTag]) }));
const services = Object.entries(compose.services);
/** The variables that can be given as a file. */
const secrets = [...readFileSync(inRoot('.env.example'), 'utf8').matchAll(/\b([A-Z_]+)_FILE:/g)].map(
  ([, name]) => /** @type {string} */ (name),
);

describe('docker-compose.yml', () => {
  it('configures Kafka like npm start, except for addresses', () => {
    const properties = brokerProperties({ port: 1, controllerPort: 2 })
      .split('\n')
      .filter((line) => line.includes('=') && !line.startsWith('#'))
      .map((line) => /** @type {[string, string]} */ (line.split(/=(.*)/)))
      .filter(([name]) => !/listener|voters|log\.dirs/.test(name));
    const environment = compose.services.kafka.environment;
    const set = properties.map(([name]) => [name, String(environment[`KAFKA_${name.replaceAll('.', '_').toUpperCase()}`])]);
    expect(Object.fromEntries(set)).toEqual(Object.fromEntries(properties));
  });

  it('ends a broker that has no memory left, whatever its heap, so that it is restarted', () => {
    expect(compose.services.kafka).toMatchObject({ restart: 'unless-stopped' });
    expect(compose.services.kafka.environment.KAFKA_HEAP_OPTS).toMatch(/} -XX:\+ExitOnOutOfMemoryError$/);
  });

  it('starts Kafka without its log of garbage collections, which would grow to 1 GB, as on Kubernetes', () => {
    const statefulSet = readFileSync(inRoot('k8s', 'components', 'kafka-single', 'kafka.yaml'), 'utf8');
    expect(compose.services.kafka.environment.EXTRA_ARGS).toBe('-name kafkaServer');
    expect(statefulSet).toContain("{ name: EXTRA_ARGS, value: '-name kafkaServer' }");
  });

  it('checks that Kafka responds without starting a JVM', () => {
    const { environment, healthcheck } = compose.services.kafka;
    const port = /INSIDE:\/\/:(\d+)/.exec(environment.KAFKA_LISTENERS)?.[1];
    expect(healthcheck.test).toEqual(['CMD', 'bash', '-c', `: > /dev/tcp/127.0.0.1/${port}`]);
  });

  it.each(['kafka', 'postgres'])('gives %s an hour to recover from a crash, as on Kubernetes', (store) => {
    expect(compose.services[store].healthcheck.start_period).toBe('1h');
  });

  it('keeps users’ calls from its services, and from the port of Kafka on the machine, beside what the operator adds', () => {
    const names = APPS.flatMap((app) => [app, `${app}.stores`]);
    for (const app of ['catalog', 'routing', 'runtime']) {
      expect(compose.services[app].environment.SLUICE_PROTECTED_HOSTS).toBe(
        `${names.join(',')},kafka,postgres,host.docker.internal:\${SLUICE_KAFKA_PORT:-9092},\${SLUICE_PROTECTED_HOSTS:-}`,
      );
    }
  });

  it.each(APPS)('gives %s a separate name in the network of the stores, because its ordinary name leads to one address only', (app) => {
    const { default: _, ...others } = compose.services[app].networks;
    expect(others).toEqual({ stores: { aliases: [`${app}.stores`] } });
  });

  it('publishes the API, the endpoints and Kafka on an address that the operator must open explicitly', () => {
    const ports = services.flatMap(([name, { ports = [] }]) => ports.map((/** @type {string} */ port) => `${name} ${port}`));
    expect(ports).toEqual([
      'kafka 127.0.0.1:${SLUICE_KAFKA_PORT:-9092}:9092',
      'gateway ${SLUICE_HOST:-127.0.0.1}:${SLUICE_HTTP_PORT:-3000}:3000',
      'runtime ${SLUICE_HOST:-127.0.0.1}:${SLUICE_ENDPOINTS_PORT:-3001}:3001',
    ]);
    expect(compose.networks.stores.internal).toBe(true);
  });

  it.each(services)('drops all capabilities of %s and prevents it from gaining any', (_, { cap_drop, security_opt }) => {
    expect(cap_drop).toEqual(['ALL']);
    expect(security_opt).toContain('no-new-privileges:true');
  });

  it.each(APPS)('allows replicas of %s and makes its root read-only', (name) => {
    expect(compose.services[name]).toMatchObject({ read_only: true, tmpfs: ['/tmp'], restart: 'unless-stopped', stop_grace_period: '60s' });
    expect(compose.services[name]).not.toHaveProperty('container_name');
  });

  it.each(APPS)('restarts %s when a secret changes', (name) => {
    expect(compose.services[name].depends_on.secrets).toEqual({ condition: 'service_completed_successfully', restart: true });
  });

  it.each(APPS)('passes the file of every secret on to %s', (name) => {
    const passed = Object.keys(compose.services[name].environment);
    // DATABASE_URL always has a value here; its password is a separate secret
    const given = secrets.filter((secret) => passed.includes(secret) && secret !== 'DATABASE_URL');
    expect(given).toContain('KAFKA_SASL_PASSWORD');
    expect(passed).toEqual(expect.arrayContaining(given.map((secret) => `${secret}_FILE`)));
  });

  it('mounts the first API key only where it is created and where the operator reads it', () => {
    const mounts = services.filter(([, { volumes = [] }]) =>
      volumes.some((/** @type {string} */ volume) => volume.startsWith('first-account:')),
    );
    expect(mounts.map(([name]) => name)).toEqual(['bootstrap', 'gateway']);
  });

  it('keeps the first API key after a roll back to a version that has generated another one, and the other one beside it', () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-compose-'));
    try {
      for (const volume of ['secrets', 'first-account']) mkdirSync(join(dir, volume));
      const start = () => {
        const script = compose.services.bootstrap.entrypoint.at(-1).replaceAll(/\/(secrets|first-account)\b/g, `${dir}/$1`);
        execFileSync('sh', ['-ec', `sluice() { :; }\n${script}`]);
      };
      for (const key of ['first', 'second', 'third']) {
        rmSync(join(dir, 'secrets/api-key'), { force: true });
        writeFileSync(join(dir, 'secrets/api-key'), `${key}\n`);
        start();
        start();
      }
      const keys = readdirSync(join(dir, 'first-account')).map((name) => [name, readFileSync(join(dir, 'first-account', name), 'utf8')]);
      expect(Object.fromEntries(keys)).toEqual({ 'api-key': 'first\n', 'other-api-keys': 'second\nthird\n' });
      expect(readFileSync(join(dir, 'secrets/api-key'), 'utf8')).toBe('first\n');
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  it('restarts nothing for SLUICE_API_KEY, which an operator’s shell may have for the command line', () => {
    const given = services.filter(([, { environment = {} }]) => 'SLUICE_API_KEY' in environment);
    expect(given.map(([name]) => name)).toEqual(['bootstrap']);
    for (const [, { depends_on = {} }] of services) expect(depends_on.bootstrap ?? {}).not.toHaveProperty('restart');
  });

  it('contains no password', () => {
    expect(file).not.toMatch(/(PASSWORD|KEY): *[^ \n$/]/);
    expect(file).not.toMatch(/:\/\/\w+:\w+@/);
  });
});

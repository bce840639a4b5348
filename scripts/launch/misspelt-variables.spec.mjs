import { describe, expect, it, jest } from '@jest/globals';
import { inRoot } from '../shell/paths.mjs';

// as Node does it, from the sources
jest.unstable_mockModule(
  inRoot('dist', 'libs', 'contracts', 'src', 'unknown-field.js'),
  () => import('../../libs/contracts/src/unknown-field.js'),
  { virtual: true },
);
const { misspeltVariables } = await import('./misspelt-variables.mjs');

/** @param {string[]} names */
const found = (...names) => misspeltVariables(Object.fromEntries(names.map((name) => [name, 'x'])));

describe('variables of the environment', () => {
  it.each([
    ['SLUICE_HTTP_PROT', 'SLUICE_HTTP_PORT'],
    ['SLUICE_SECRET_KEY', 'SLUICE_SECRETS_KEY'],
    ['SLUICE_DATADIR', 'SLUICE_DATA_DIR'],
    ['SLUICE_LOGLEVEL', 'SLUICE_LOG_LEVEL'],
    ['SLUICE_PARTITION', 'SLUICE_PARTITIONS'],
    ['RUNNER_TRUST_ALL_COMPONENT', 'RUNNER_TRUST_ALL_COMPONENTS'],
  ])('are reported if they are almost those of Sluice: %s', async (name, meant) => {
    expect(await found(name)).toEqual([`${name} is not a variable of Sluice: did you mean ${meant}?`]);
  });

  it('are not reported if Sluice, its command line or its tests read them, or if they are those of other programs', async () => {
    const ofSluice = ['SLUICE_HTTP_PORT', 'SLUICE_SMTP_URL_FILE', 'SLUICE_API_KEY', 'SLUICE_URL', 'SLUICE_PROFILE', 'SLUICE_LOCAL_URL'];
    const ofTests = ['SLUICE_SEED', 'SLUICE_TEST_DATABASE_URL', 'SLUICE_TEST_KAFKA_BROKERS', 'SLUICE_E2E_TARGET', 'SLUICE_ATTACK_JAIL'];
    const ofUsers = [
      'SLUICE_CONNECTION_CHAT',
      'SLUICE_SECRET_CHATTER_TOKEN',
      'SLUICE_WEBHOOK_SECRET',
      'SLUICE_FOO',
      'RUNNER_NAME',
      'RUNNER_OS',
      'RUNNER_TEMP',
      'PATH',
    ];
    // of services in Kubernetes
    const links = ['GATEWAY', 'ROUTING', 'RUNTIME', 'CATALOG', 'EVENT_STORE', 'KAFKA', 'POSTGRES'].flatMap((service) =>
      ['SERVICE_HOST', 'SERVICE_PORT', 'PORT', 'PORT_8080_TCP', 'PORT_8080_TCP_ADDR', 'PORT_8080_TCP_PROTO'].map(
        (end) => `SLUICE_${service}_${end}`,
      ),
    );
    expect(await found(...ofSluice, ...ofTests, ...ofUsers, ...links)).toEqual([]);
  });
});

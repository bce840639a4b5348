import { describe, expect, test } from '@jest/globals';
import { inRoot } from '../shell/paths.mjs';
import { banner } from './banner.mjs';
import { readSettings } from './settings.mjs';

/** @param {Record<string, string>} variables @param {{ apiKey?: string | null, showsKey?: boolean }} [options] */
const shown = (variables, { apiKey = 'slk_key', showsKey = true } = {}) =>
  banner({ settings: readSettings(variables), apiKey, keyFile: inRoot('.sluice', 'api-key'), showsKey });

describe('the text that npm start prints once everything runs', () => {
  test('lists the REST API, its documentation, the endpoints, Kafka and the key', () => {
    const text = shown({ SLUICE_ENDPOINTS_PORT: '4001', SLUICE_KAFKA_PORT: '4092' });
    for (const part of ['localhost:3000/v1', 'localhost:3000/docs', 'localhost:4001', 'localhost:4092', 'slk_key', '.sluice/api-key'])
      expect(text).toContain(part);
  });

  test('shows what to do next, with the variable that the command line needs to find this instance', () => {
    expect(shown({})).toMatch(/Next, .*:\n\n {4}npx sluice deploy http-request/);
    expect(shown({ SLUICE_HTTP_PORT: '4000', SLUICE_DATA_DIR: '/data' })).toMatch(
      /Next, .*:\n\n {4}export SLUICE_DATA_DIR=\/data\n {4}npx sluice deploy/,
    );
  });

  test('leads to the first delivery', () => {
    // with the variable that the receiver names if the port is in use
    const receiver = ['export PORT=4000', 'receiver.mjs \\$PORT &', 'sluice subscribe orders http://localhost:\\$PORT/'];
    expect(shown({})).toMatch(new RegExp(['sluice deploy', ...receiver, 'sluice trigger orders'].join('[^]*')));
  });

  test('quotes a data folder that a shell would not read as one word', () => {
    expect(shown({ SLUICE_DATA_DIR: "/my data/Jo's" })).toContain(`export SLUICE_DATA_DIR='/my data/Jo'\\''s'\n`);
  });

  test('lists the ports of health and metrics if there are any', () => {
    expect(shown({})).not.toContain('metrics');
    expect(shown({ SLUICE_HEALTH_PORT: '8080' })).toContain(
      'localhost:8080/metrics; ports 8080 (gateway), 8081 (catalog), 8082 (routing), 8083 (event-store), 8084 (runtime)',
    );
  });

  test.each([
    ['127.0.0.2', '127.0.0.2'],
    ['::1', '[::1]'],
    ['0.0.0.0', 'localhost'],
    ['::', 'localhost'],
  ])('shows addresses at which the services listen: %s', (host, shownHost) => {
    const [addresses = ''] = shown({ SLUICE_HOST: host, SLUICE_HEALTH_PORT: '8080' }).split('Next');
    expect(addresses.match(/http:.*(?=:\d+)/g)).toEqual(Array(4).fill(`http://${shownHost}`));
    expect(shown({ SLUICE_HOST: '127.0.0.2', SLUICE_HTTP_HOST: host })).toContain(`http://${shownHost}:3000/v1`);
  });

  test('shows where the key is stored, without the key, in a log', () => {
    const text = shown({}, { showsKey: false });
    expect(text).not.toContain('slk_key');
    expect(text).toMatch(/API key +\(stored in \.sluice\/api-key\)\n/);
  });

  test('shows how to get a key if none is known', () => {
    expect(shown({}, { apiKey: null })).toMatch(/API key +unchanged; to create another: npx sluice admin key create/);
  });
});

import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { inRoot } from './shell/paths.mjs';

const page = readFileSync(inRoot('docs', 'reference', 'api-limits.md'), 'utf8');
const rows = new Map([...page.matchAll(/^\| (.+?) +\| (.+?) +\| \d+ +\|$/gm)].map(([, name = '', limit = '']) => [name, limit]));

/** The value of a constant in a file of an app or library. @param {string} file @param {string} name */
function constant(file, name) {
  const [, value = ''] = new RegExp(`const ${name} = ([\\d_ *]+);`).exec(readFileSync(inRoot(file), 'utf8')) ?? [];
  return value.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '') || NaN), 1);
}

const KiB = 1024;
const REMOTE = 'apps/catalog/src/components/remote-code.ts';
const FETCHER = 'apps/catalog/src/components/code-fetcher.ts';
const OPTIONS = 'apps/runtime/src/components/prop-options.controller.ts';
const REPLAYS = 'apps/routing/src/replays/replays.controller.ts';
const LISTENERS = 'apps/routing/src/history/event-listeners.controller.ts';
const PUBLISHED = 'apps/gateway/src/publishing/published-events.ts';

it.each([
  ['body', 'apps/gateway/src/http/received-bodies.ts', 'MAX_CHUNKS', 'at most # chunks', 1],
  ['JSON of a body', 'libs/contracts/src/values.ts', 'MAX_JSON_PARTS', '# values and names', 1],
  ['JSON of a body', 'libs/contracts/src/values.ts', 'MAX_JSON_DEPTH', '# levels deep', 1],
  ['time to send a request', 'apps/gateway/src/http/gateway-adapter.ts', 'REQUEST_MS', '# s', 1000],
  ['time to send a request', 'libs/http-server/src/http-connections.ts', 'HEADERS_MS', '# s for the headers', 1000],
  ['time to send a request', 'libs/http-server/src/http-connections.ts', 'CHECK_CONNECTIONS_MS', 'every # s', 1000],
  ['its requests that wait for their turns', 'apps/gateway/src/limits/request-queues.ts', 'MAX_WAITING', '# of each', 1],
  ['bodies of an account in progress', 'apps/gateway/src/http/received-bodies.ts', 'MAX_BYTES_PER_ACCOUNT', '# MiB', KiB * KiB],
  ['CloudEvents attributes', 'libs/events/src/cloud-event.ts', 'MAX_ATTRIBUTES', '# of an event', 1],
  ['CloudEvents attributes', 'libs/events/src/cloud-event.ts', 'MAX_ATTRIBUTES_BYTES', '# KiB', KiB],
  ['a batch', PUBLISHED, 'MAX_EVENTS', '# events', 1],
  ['a batch', PUBLISHED, 'MAX_BATCH_ATTRIBUTES', '# attributes', 1],
  ['API keys', 'apps/gateway/src/accounts/accounts.service.ts', 'MAX_KEYS', '#', 1],
  ['credentials of a connection', 'apps/catalog/src/connections/connections.service.ts', 'MAX_BYTES', '# KiB', KiB],
  ['configured props of a source', 'libs/contracts/src/sources.ts', 'CONFIGURED_PROPS_BYTES', '# KiB', KiB],
  ['timers of a source', 'libs/schedules/src/cron.ts', 'MAX_TIMERS', '#', 1],
  ['connections of a source', 'apps/catalog/src/sources/source-connections.ts', 'MAX_CONNECTIONS', '#', 1],
  ['replays', REPLAYS, 'RUNNING_PER_ACCOUNT', '# that run', 1],
  ['replays', REPLAYS, 'COUNTED_PER_ACCOUNT', '# whose events', 1],
  ['replays', REPLAYS, 'COUNTED_OF_ALL', '# of all accounts', 1],
  ['tests of webhooks at a time', 'apps/routing/src/deliveries/direct/webhook-test.ts', 'AT_ONCE', '# in each replica', 1],
  ['deliveries of an event', LISTENERS, 'ATTEMPTS_BYTES', '# MiB of attempts', KiB * KiB],
  ['deliveries of an event', 'libs/messaging/src/reply-parts.ts', 'MAX_REPLY_BYTES', 'at most # MiB', KiB * KiB],
  ['events whose deliveries are listed', LISTENERS, 'AT_ONCE', '# at a time', 1],
  ['events whose deliveries are listed', 'libs/limits/src/queue-per-key.ts', 'MAX_WAITING_REQUESTS', '# wait', 1],
  ['`component_url`', FETCHER, 'MAX_URL_LENGTH', '# characters', 1],
  ['files of `component_url`', REMOTE, 'MAX_FILES', '#, 4 MiB', 1],
  ['files of `component_url`', REMOTE, 'MAX_FILES_BYTES', '# MiB', KiB * KiB],
  ['files of `component_url`', REMOTE, 'MAX_FETCHES', '# requests', 1],
  ['files of `component_url`', FETCHER, 'MAX_REDIRECTS', '# redirects', 1],
  ['files of `component_url`', FETCHER, 'TIMEOUT_MS', 'and # s', 1000],
  ['files of `component_url`', REMOTE, 'READ_MS', 'all within # s', 1000],
  ['imports of one file', REMOTE, 'MAX_IMPORTS', '#', 1],
  ['components fetched at a time', REMOTE, 'READS_PER_ACCOUNT', '# of an account', 1],
  ['components fetched at a time', REMOTE, 'READS_OF_ALL', '# of all', 1],
  ['time of `options()`', OPTIONS, 'OPTIONS_MS', '# s', 1000],
  ['calls of `options()` at a time', OPTIONS, 'OPTIONS_PER_ACCOUNT', '# of an account', 1],
  ['calls of `options()` at a time', OPTIONS, 'OPTIONS_OF_ALL', '# of all', 1],
  ['result of `options()`', 'libs/contracts/src/values.ts', 'MAX_JSON_PARTS', '# JSON values', 1],
])('docs/reference/api-limits.md states the limit of %s that %s has as %s', (row, file, name, text, unit) => {
  const value = constant(file, name) / unit;
  const written = value < 10_000 ? String(value) : value.toLocaleString('en');
  expect(rows.get(row)).toMatch(new RegExp(`(^|\\D)${text.replace('#', written)}`));
});

// npm run real-components [-- --package NAME@VERSION --only PATTERN --verbose] — deploys the sources of public packages to a whole system, runs them against mock
// APIs, and reports which were described, deployed and run, and why the others were not.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, posix } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { apiClient, startOwnSystem } from '../../scripts/temporary/own-system.mjs';
import { ownFolder } from '../../scripts/temporary/own-stores.mjs';
import { inRoot } from '../../scripts/shell/paths.mjs';
import { startMockServer } from './mock-server.mjs';
import { packages, sourcesOf } from './packages.mjs';
import { credentials, otherHosts, propValues, triggers } from './samples.mjs';

const { values: options } = parseArgs({
  options: {
    package: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
  },
});
/** Of this machine, and nothing else uses it. */
const ADDRESS = '127.0.0.86';
const HOOK_MS = 40_000;
const RUN_MS = 40_000;
const EVENT_MS = 10_000;

/**
 * @typedef {object} Result
 * @property {string} source
 * @property {'keys' | 'oauth' | 'app hook'} needs
 * @property {boolean} described
 * @property {boolean} deployed
 * @property {boolean} emitted
 * @property {string} [reason] why it did not get further
 */

/** The last step that a source reached, and why not the next. */
class Failed extends Error {}

const folder = await ownFolder();
/** @type {import('./packages.mjs').Package[]} */
const corpus = [];
for await (const each of packages(options.package)) {
  if (each.licence === 'MIT') corpus.push(each);
  else console.error(`${each.id} is skipped: its licence is ${each.licence}`);
}
const files = new Map(corpus.flatMap(({ id, files }) => Object.entries(files).map(([path, text]) => [`/${id}/${path}`, text])));
const hosts = [...files.values()].flatMap((text) =>
  [...text.matchAll(/https?:\/\/([a-z\d-]+(?:\.[a-z\d-]+)+)/gi)].map(([, host = '']) => host.toLowerCase()),
);
const apis = await startMockServer(ADDRESS, [...new Set([...hosts, ...otherHosts])]).catch((error) => {
  throw new Error(`the mock server needs the ports 443 and 80 of ${ADDRESS}: run as root, or with net.ipv4.ip_unprivileged_port_start=80`, {
    cause: error,
  });
});
writeFileSync(join(folder, 'ca.pem'), apis.cert, { mode: 0o644 });
const code = createServer((request, response) => {
  const text = files.get(decodeURI(request.url ?? ''));
  response.writeHead(text === undefined ? 404 : 200).end(text);
});
await new Promise((resolve) => code.listen(0, '127.0.0.1', () => resolve(undefined)));
const { port } = /** @type {import('node:net').AddressInfo} */ (code.address());

const system = await startOwnSystem({
  SLUICE_ALLOW_PRIVATE_HOSTS: `127.0.0.1:${port},${ADDRESS}`,
  // as an operator would who has looked at their install scripts
  SLUICE_PACKAGES_LIST: 'aws-sdk,faunadb,protobufjs',
  SLUICE_PACKAGES_STORE: inRoot('.cache', 'real-components', 'npm'),
  REAL_COMPONENTS_ADDRESS: ADDRESS,
  REAL_COMPONENTS_CERTIFICATE: join(folder, 'ca.pem'),
  NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, 'redirect.mjs')).href}`,
});
try {
  const api = apiClient(system);
  /** @type {Result[]} */
  const results = [];
  for (const from of corpus)
    for (const file of sourcesOf(from)) {
      if (!new RegExp(options.only).test(`${from.id}/${file.path}`)) continue;
      const result = await play(api, from.id, file);
      results.push(result);
      console.error(
        `${result.emitted ? 'ran' : result.deployed ? 'deployed' : result.described ? 'described' : 'failed'}  ${result.source}${result.reason ? `: ${result.reason}` : ''}`,
      );
    }
  report(results);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await system.stop();
  apis.close();
  code.close();
  code.closeAllConnections();
}

/**
 * @param {ReturnType<typeof apiClient>} api
 * @param {string} packageId
 * @param {import('./packages.mjs').SourceFile} file
 * @returns {Promise<Result>}
 */
async function play(api, packageId, file) {
  const result = { source: `${packageId}/${file.path}`, needs: file.needs, described: false, deployed: false, emitted: false };
  apis.reset();
  let id = '';
  try {
    const url = `http://127.0.0.1:${port}/${packageId}/${file.path}`;
    const component = await api('POST', '/components', { component_url: encodeURI(url) }).catch(failing('description'));
    result.described = true;
    const source = await api('POST', '/sources', {
      component_id: component.id,
      configured_props: propsOf(component.configurable_props, file.app),
    }).catch(failing('deployment'));
    id = source.id;
    result.deployed = true;
    for (const hook of ['deploy', 'activate']) if (hasHook(file.code, hook)) succeeded(await runOf(api, id, hook, 0, HOOK_MS));
    await trigger(api, source, component, file);
    result.emitted = true;
    if (hasHook(file.code, 'deactivate')) {
      await api('PATCH', `/sources/${id}`, { active: false });
      succeeded(await runOf(api, id, 'deactivate', 0, HOOK_MS));
    }
    return result;
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    if (options.verbose) {
      if (id)
        for (const { event } of await api('GET', `/sources/${id}/event_summaries?event_name=$logs&limit=20&expand=event`))
          console.error('   ', event.level, event.message);
      for (const { to } of apis.calls()) console.error('   ', to);
    }
    return { ...result, reason: error.message };
  } finally {
    if (id) await api('DELETE', `/sources/${id}`);
  }
}

/**
 * Runs a source until it has emitted an event that is stored: a timer twice, because some sources only remember what they find the first time.
 *
 * @param {ReturnType<typeof apiClient>} api
 * @param {any} source
 * @param {any} component
 * @param {import('./packages.mjs').SourceFile} file
 */
async function trigger(api, source, component, file) {
  const isTimer = component.configurable_props.some((/** @type {any} */ { type }) => type === '$.interface.timer');
  const http = component.configurable_props.find((/** @type {any} */ { type }) => type === '$.interface.http');
  for (let run = 0; run < (isTimer ? 2 : 1); run++) {
    if (isTimer) await api('POST', `/sources/${source.id}/run`);
    else if (http) await request(source.configured_props[http.name].endpoint_url, file);
    else throw new Failed('the source has neither a timer nor an endpoint');
    const { emitted } = succeeded(await runOf(api, source.id, 'run', run, RUN_MS));
    if (emitted > 0) break;
  }
  const until = performance.now() + EVENT_MS;
  while ((await api('GET', `/sources/${source.id}/event_summaries?event_name=*&limit=1`)).length === 0) {
    if (performance.now() > until) throw new Failed('run: it found nothing to emit in what the mock API returned');
    await sleep(50);
  }
}

/**
 * @param {string} endpoint
 * @param {import('./packages.mjs').SourceFile} file
 */
async function request(endpoint, { app, path }) {
  const {
    path: below = '',
    headers = {},
    body = {},
  } = triggers[app]?.(posix.parse(path).name, apis.calls(), endpoint) ?? { body: { id: 1, name: 'one' } };
  const isText = typeof body === 'string';
  const response = await fetch(endpoint.replace(/\/$/, '') + below, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: isText ? body : JSON.stringify(body),
  });
  await response.text();
}

/**
 * @param {{ name: string, type: string, optional?: boolean, default?: unknown, options?: any[] }[]} props
 * @param {string} app
 */
function propsOf(props, app) {
  /** @type {Record<string, unknown>} */
  const values = {};
  for (const { name, type, optional, options: choices, ...prop } of props) {
    const known = Object.hasOwn(propValues, `${app}.${name}`);
    if (known) values[name] = /** @type {Record<string, unknown>} */ (propValues)[`${app}.${name}`];
    else if (type === 'app') values[name] = { $auth: credentials };
    else if (type === '$.interface.timer' && prop.default === undefined) values[name] = { intervalSeconds: 900 };
    else if (!type.startsWith('$.') && !optional && prop.default === undefined) values[name] = valueOf(type, choices);
  }
  return values;
}

/**
 * @param {string} type
 * @param {any[]} [choices]
 * @returns {unknown}
 */
function valueOf(type, choices) {
  if (type.endsWith('[]')) return [valueOf(type.slice(0, -2), choices)];
  const [choice] = Array.isArray(choices) ? choices : [];
  if (choice !== undefined) return choice?.value ?? choice;
  return /** @type {Record<string, unknown>} */ ({ integer: 1, boolean: false, object: {} })[type] ?? 'x';
}

/**
 * The run of a method after the first `skipped` ones.
 *
 * @param {ReturnType<typeof apiClient>} api
 * @param {string} id
 * @param {string} method
 * @param {number} skipped
 * @param {number} ms
 */
async function runOf(api, id, method, skipped, ms) {
  const until = performance.now() + ms;
  for (;;) {
    const runs = (await api('GET', `/sources/${id}/runs?limit=100`)).filter((/** @type {any} */ run) => run.method === method);
    const run = runs.reverse()[skipped];
    if (run) return run;
    if (performance.now() > until) throw new Failed(`${method}: it did not end within ${ms / 1000} s`);
    await sleep(50);
  }
}

/** @param {any} run */
function succeeded(run) {
  if (run.status !== 'succeeded') throw new Failed(`${run.method}: ${run.error?.message ?? run.status}`);
  return run;
}

/** @param {string} code @param {string} hook */
function hasHook(code, hook) {
  return /\bhooks\s*:/.test(code) && new RegExp(`\\b${hook}\\s*(?:\\(|:)`).test(code);
}

/** @param {string} step */
function failing(step) {
  return (/** @type {Error} */ error) => {
    const [, status, text = ''] = /: (\d{3}) (.*)$/s.exec(error.message) ?? [];
    if (!status) throw error;
    let message = text;
    try {
      const { errors, detail } = JSON.parse(text);
      message = errors?.[0]?.message ?? detail ?? text;
    } catch {
      // not a problem document
    }
    throw new Failed(`${step}: ${message.replace(/\. (?:Available packages|Packages that need no registry): .*/s, '')}`);
  };
}

/** @param {Result[]} results */
function report(results) {
  /** @type {Map<string, Result[]>} */
  const reasons = new Map();
  for (const result of results) if (result.reason) reasons.set(result.reason, [...(reasons.get(result.reason) ?? []), result]);
  for (const [reason, failed] of [...reasons].sort(([, a], [, b]) => b.length - a.length)) {
    console.log(`\n${failed.length} × ${reason}`);
    for (const { source } of failed) console.log(`  ${source}`);
  }
  const count = (/** @type {Result[]} */ some) => ({
    sources: some.length,
    described: some.filter(({ described }) => described).length,
    deployed: some.filter(({ deployed }) => deployed).length,
    emitted: some.filter(({ emitted }) => emitted).length,
    completed: some.filter(({ emitted, reason }) => emitted && !reason).length,
  });
  const needing = (/** @type {string} */ needs) => count(results.filter((result) => result.needs === needs));
  console.log(
    `\n${JSON.stringify({
      tool: 'real-components',
      packages: corpus.map(({ id }) => id),
      ...count(results),
      keys: needing('keys'),
      oauth: needing('oauth'),
      app_hook: needing('app hook'),
    })}`,
  );
}

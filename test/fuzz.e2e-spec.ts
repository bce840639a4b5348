import { afterAll, beforeAll, expect } from '@jest/globals';
import { type Api, http } from './support/api.js';
import { anyText, anything, Chance, sample } from './support/generate.js';
import { type Operation, operations } from './support/openapi.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const REQUESTS = Number(process.env.SLUICE_FUZZ_REQUESTS ?? 400);
const SEED = Number(process.env.SLUICE_SEED);
const AT_ONCE = 4;
/** The number of requests to the same resources before they are created again, because some requests delete them. */
const ROUND = 200;
/** Few, because each new one is evaluated in a process. */
const CODES = [
  "export default { name: 'Fuzz', key: 'fuzz', run() {} }",
  "export default { name: 'P', props: { a: 'string', t: { type: '$.interface.timer' } } }",
  'not code',
  '',
];

/** The prefix of the ids in a collection. */
const PREFIXES: Record<string, string> = {
  sources: 'dc_',
  webhooks: 'wh_',
  workflows: 'p_',
  components: 'sc_',
  users: 'u_',
  keys: 'key_',
  replays: 'rpl_',
  connections: 'apn_',
};

let system: System;
let api: Api;
let other: Api;
/** Values that identify something, by the parameter or the part of the path. */
let known: string[];
beforeAll(async () => {
  system = await joinSystem();
  api = await system.account();
  other = await system.account();
});
afterAll(() => system?.stop());

async function knownThings(): Promise<string[]> {
  const [mine, theirs] = [await api.source(CODES[0]!), await other.source(CODES[0]!)];
  return [
    mine.id,
    theirs.id,
    mine.component_id,
    await api.webhook('http://localhost:1/'),
    api.account.id,
    (await api.post('/keys', {})).body.data.id as string,
    (await api.post('/connections', { app: 'fuzz', credentials: { key: 'x' } })).body.data.id as string,
    'dc_000000000000000000',
    'p_000000000000000000',
    'rpl_000000000000000000',
    'http-request',
    'fuzz',
  ];
}

// a live stream has no end to wait for
const fuzzed = operations.filter(({ responses }) => !JSON.stringify(responses).includes('text/event-stream'));

function requestOf(chance: Chance, operation: Operation) {
  const text = (): string => (chance.happens(0.5) ? chance.oneOf(known) : anyText(chance));
  const path = operation.path.replace(/(\w+)\/\{\w+\}/g, (_, collection: string) => {
    const fitting = known.filter((name) => name.startsWith(PREFIXES[collection] ?? ''));
    const name = chance.happens(0.6) ? chance.oneOf(fitting) : text();
    return `${collection}/${encodeURIComponent(name.toWellFormed() || 'x')}`;
  });
  const query = new URLSearchParams();
  for (const { name, schema, in: where, required } of operation.parameters) {
    if (where !== 'query' || !chance.happens(required ? 0.9 : 0.3)) continue;
    do query.append(name, chance.happens(0.4) ? String(sample(schema)) : text());
    while (chance.happens(0.05));
  }
  const headers: Record<string, string> = { authorization: `Bearer ${api.account.api_key}` };
  if (chance.happens(0.1)) headers['idempotency-key'] = chance.oneOf(['a', 'b', 'x'.repeat(256), ' ', 'c d']);
  for (const { name, in: where } of operation.parameters)
    if (where === 'header' && name !== 'Idempotency-Key' && chance.happens(0.2))
      headers[name] = encodeURIComponent(anyText(chance).toWellFormed());
  let body: string | undefined;
  if (operation.method !== 'GET' && chance.happens(operation.body ? 0.9 : 0.3)) {
    const type = chance.oneOf(['application/json', ...Object.keys(operation.bodies)]);
    headers['content-type'] = chance.happens(0.95)
      ? type
      : chance.oneOf(['text/plain', 'application/json; charset', 'x', 'multipart/form-data']);
    const value = (operation.bodies[type] ? sample(operation.bodies[type]) : {}) as Record<string, unknown>;
    for (const name of Object.keys(value)) {
      if (chance.happens(0.4)) delete value[name];
      else if (name === 'component_code') value[name] = chance.happens(0.9) ? chance.oneOf(CODES) : anything(chance, 3);
      else if (name === 'component_url') value[name] = chance.oneOf(['http://127.0.0.1:1/', 'x', null, 5]);
      else if (chance.happens(0.5)) value[name] = chance.happens(0.5) ? chance.oneOf(known) : anything(chance);
    }
    if (chance.happens(0.1)) value[anyText(chance)] = anything(chance);
    body = chance.happens(0.95) ? JSON.stringify(value) : chance.oneOf(['', '{', '[]', '"x"', JSON.stringify(anything(chance))]);
  }
  return { method: operation.method, path: `${path}${chance.happens(0.1) ? '/' : ''}?${query.toString()}`, headers, body };
}

// it only creates things in its own account
needing('accounts').it(
  `never returns 5xx, and returns only what the API describes, for ${REQUESTS} generated requests (SLUICE_SEED=${SEED})`,
  async () => {
    const chance = new Chance(SEED);
    const origin = new URL(api.baseUrl).origin;
    const statuses: Record<number, number> = {};
    const failures: string[] = [];
    const send = async (requests: ReturnType<typeof requestOf>[]): Promise<void> => {
      for (let request = requests.pop(); request; request = requests.pop()) {
        const { method, path, ...rest } = request;
        const said = JSON.stringify(request).slice(0, 600);
        try {
          const { status, text } = await http(method, `${origin}${path}`, rest);
          statuses[status] = (statuses[status] ?? 0) + 1;
          if (status >= 500) failures.push(`${status} ${text} to ${said}`);
        } catch (error) {
          failures.push(`${(error as Error).message} to ${said}`);
        }
      }
    };
    for (let sent = 0; sent < REQUESTS; sent += ROUND) {
      known = await knownThings();
      const requests = Array.from({ length: Math.min(ROUND, REQUESTS - sent) }, () => requestOf(chance, chance.oneOf(fuzzed)));
      await Promise.all(Array.from({ length: AT_ONCE }, () => send(requests)));
    }
    console.info(`fuzz: SLUICE_SEED=${SEED}, statuses ${JSON.stringify(statuses)}`);
    expect(failures.slice(0, 20)).toEqual([]);
  },
  60_000 + REQUESTS * 60,
);

// npm run soak:runtime [-- --runs 10000 --sources 50 --seconds 120] — kills the runtime at random moments while sources are triggered, and
// compares the counts and emits of every source with its triggers.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { apiClient, startOwnSystem } from '../../scripts/temporary/own-system.mjs';

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    sources: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '120' },
    seed: { type: 'string', default: String(Date.now() % 1e6) },
  },
});
const SOURCES = Number(options.sources);
const TRIGGERS = Math.ceil(Number(options.runs) / SOURCES);
const SECONDS = Number(options.seconds);
const CODE = `export default { name: 'counter', props: { db: '$.service.db' },
  run(event) { const n = (this.db.get('n') ?? 0) + 1; this.db.set('n', n); this.$emit({ trigger: event.n, n }); this.$emit(n, { name: 'second' }); } }`;

let state = Number(options.seed);
/** Park and Miller's generator: a soak can be repeated with its seed. */
const random = () => (state = (state * 48271) % 2147483647) / 2147483647;

console.log(`seed ${options.seed}`);
const system = await startOwnSystem();
const kafka = new kafkajs.Kafka({ clientId: 'soak', brokers: [system.brokers], logLevel: kafkajs.logLevel.ERROR });
const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
const consumer = kafka.consumer({ groupId: 'soak.events' });
/** The events of each source by emit id: records with the same id are one event. @type {Map<string, Map<string, { stream: string, event: any }>>} */
const emitted = new Map();
try {
  const api = apiClient(system);
  const silent = await api('POST', '/sources', {
    component_code: "export default { name: 'silent', props: { http: '$.interface.http' } }",
  });
  const component = await api('POST', '/components', { component_code: CODE });
  /** @type {string[]} */
  const sources = [];
  for (let n = 0; n < SOURCES; n++) {
    const { id } = await api('POST', '/sources', { component_id: component.id });
    await api('POST', `/subscriptions?emitter_id=${silent.id}&listener_id=${id}`);
    sources.push(id);
    emitted.set(id, new Map());
  }
  await consumer.connect();
  await consumer.subscribe({ topic: 'events', fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      const events = emitted.get(message.key?.toString() ?? '');
      const header = (/** @type {string} */ name) => message.headers?.[name]?.toString() ?? '';
      events?.set(header('ce_id'), { stream: header('ce_type'), event: JSON.parse(message.value?.toString() ?? 'null') });
    },
  });
  await producer.connect();

  let [kills, triggering] = [0, true];
  const killing = (async () => {
    while (triggering) {
      await sleep(1000 + random() * 9000);
      if (!triggering) break;
      await system.apps.whenReady('runtime');
      await sleep(random() * 2000);
      void system.apps.kill('runtime');
      kills++;
    }
  })();
  const start = performance.now();
  for (let n = 0; n < TRIGGERS; n++) {
    await producer.send({ topic: 'events', acks: -1, messages: [{ key: silent.id, value: JSON.stringify({ n }) }] });
    await sleep(Math.max(0, start + ((n + 1) * SECONDS * 1000) / TRIGGERS - performance.now()));
  }
  triggering = false;
  await killing;

  const problems = await settled(() => problemsOf(sources));
  const runs = TRIGGERS * SOURCES;
  if (problems.length > 0) console.error(problems.slice(0, 20).join('\n'));
  process.exitCode = problems.length > 0 ? 1 : 0;
  console.log(
    JSON.stringify({ soak: 'runtime', seed: Number(options.seed), runs, sources: SOURCES, kills, wrong_sources: problems.length }),
  );
} finally {
  await Promise.all([producer.disconnect(), consumer.disconnect()]);
  await system.stop();
}

/**
 * Repeats the check until it finds no problems, or until nothing has changed for a minute.
 * @param {() => Promise<string[]>} look
 */
async function settled(look) {
  let [problems, before, since] = [await look(), -1, performance.now()];
  while (problems.length > 0 && performance.now() - since < 60_000) {
    await sleep(500);
    problems = await look();
    const count = [...emitted.values()].reduce((sum, events) => sum + events.size, 0);
    if (count !== before) [before, since] = [count, performance.now()];
  }
  return problems;
}

/** @param {string[]} sources */
async function problemsOf(sources) {
  const database = new pg.Client({ connectionString: system.databaseUrl.replace(/\/[^/]*$/, '/runtime') });
  await database.connect();
  const { rows } = await database.query("SELECT source_id, value FROM source_db WHERE key = 'n'");
  await database.end();
  const counted = new Map(rows.map(({ source_id, value }) => [source_id, Number(value)]));
  const expected = JSON.stringify(Array.from({ length: TRIGGERS }, (_, n) => ({ trigger: n, n: n + 1 })));
  return sources.flatMap((source) => {
    const events = [...(emitted.get(source)?.values() ?? [])];
    const first = JSON.stringify(events.filter(({ stream }) => stream !== 'second').map(({ event }) => event));
    const second = events.filter(({ stream }) => stream === 'second').length;
    if (counted.get(source) === TRIGGERS && first === expected && second === TRIGGERS) return [];
    return [`${source}: counted ${counted.get(source)}, emitted ${events.length - second} and ${second}, each should be ${TRIGGERS}`];
  });
}

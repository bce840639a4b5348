import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { needing, topic } from '../support/target.js';
import { keysOf, type World } from './world.js';

const COUNTS = ['events', 'runs', 'run_errors', 'deliveries', 'delivery_failures'] as const;
const NO_COUNTS = { events: 0, runs: 0, run_errors: 0, deliveries: 0, delivery_failures: 0 };
const CODE = `export default { name: 'Counted', async run({ fail, stream }) {
  if (fail) throw new Error(fail);
  this.$emit({}, { name: stream });
} }`;

export const stats = (world: () => World) =>
  describe('statistics', () => {
    let api: Api;
    let source: string;
    beforeAll(async () => {
      api = await world().system.account();
      source = (await api.source(CODE)).id;
    });
    const read = async (path: string, query = '') => (await api.get(`${path}/stats${query}`)).body.data;
    const sumOf = ({ buckets }: any): Record<string, number> =>
      Object.fromEntries(COUNTS.map((name) => [name, buckets.reduce((sum: number, bucket: any) => sum + bucket[name], 0)]));
    const sumsOf = async (path: string) =>
      Promise.all(['1h', '24h', '7d'].map(async (window) => sumOf(await read(path, `?window=${window}`))));

    it.each([
      ['?window=1h', 60, 60],
      ['', 24, 3600],
      ['?window=24h', 24, 3600],
      ['?window=7d', 28, 21_600],
    ])('statistics for %j have %i buckets of %i seconds, oldest first, up to now', async (query, count, width) => {
      const data = await read(`/sources/${source}`, query);
      expect(keysOf(data)).toEqual(['bucket_s', 'buckets']);
      expect([data.bucket_s, data.buckets.length]).toEqual([width, count]);
      for (const bucket of data.buckets) expect(keysOf(bucket)).toEqual([...COUNTS, 'p50_ms', 'p99_ms', 'start'].sort());
      const first = data.buckets[0].start as number;
      expect(first % width).toBe(0);
      expect(data.buckets.map(({ start }: any) => start)).toEqual(Array.from({ length: count }, (_, n) => first + n * width));
      expect(Math.abs(first + count * width - Date.now() / 1000)).toBeLessThan(width + 120);
    });

    it("a source's events, its runs and the runs that fail are counted, with their durations", async () => {
      const before = sumOf(await read(`/sources/${source}`));
      for (const event of [{}, { stream: 'x' }, { fail: 'no' }]) await api.post(`/sources/${source}/run`, { event });
      const expected = { ...NO_COUNTS, events: 2, runs: before.runs! + 3, run_errors: 1 };
      await eventually(async () => expect(await sumsOf(`/sources/${source}`)).toEqual([expected, expected, expected]));
      const { buckets } = await read(`/sources/${source}`, '?window=1h');
      for (const { runs, p50_ms, p99_ms } of buckets) {
        if (runs === 0) expect([p50_ms, p99_ms]).toEqual([null, null]);
        else expect(p50_ms > 0 && p50_ms <= p99_ms).toBe(true);
      }
    });

    needing('receiver').it("a webhook's attempts and those that fail are counted, and not its tests", async () => {
      const [good, bad] = [await api.webhook(`${world().receiver.url}stats`), await api.webhook('http://localhost:1/')];
      const emitter = (await api.source(CODE)).id;
      for (const id of [good, bad]) await api.subscribe(emitter, id);
      expect((await api.post(`/webhooks/${good}/test`)).status).toBe(200);
      await world().producer.emit(emitter, [1, 2, 3]);
      const three = { ...NO_COUNTS, deliveries: 3 };
      await eventually(async () => expect(await sumsOf(`/webhooks/${good}`)).toEqual([three, three, three]));
      await eventually(async () => {
        const { deliveries, delivery_failures } = sumOf(await read(`/webhooks/${bad}`));
        expect(delivery_failures).toBeGreaterThan(0);
        expect(deliveries).toBe(delivery_failures);
      });
      const { buckets } = await read(`/webhooks/${good}`, '?window=7d');
      expect(buckets.some(({ p50_ms, p99_ms }: any) => p50_ms > 0 && p50_ms <= p99_ms)).toBe(true);
    });

    it("a workflow's events are counted", async () => {
      const id = `p_stats${Date.now().toString(36)}`;
      const producer = world().kafka.producer();
      await producer.connect();
      const value = JSON.stringify({ id, owner_id: api.account.id, name: 'Counted', active: true });
      await producer.send({ topic: topic('workflows'), messages: [{ key: id, value }] });
      await producer.disconnect();
      await eventually(async () => expect((await api.get(`/workflows/${id}/stats`)).status).toBe(200));
      await world().producer.emit(id, [1, 2]);
      const two = { ...NO_COUNTS, events: 2 };
      await eventually(async () => expect(await sumsOf(`/workflows/${id}`)).toEqual([two, two, two]));
    });

    it.each(['1d', '', '24H', '1h&window=7d'])('return 400 for the window %j', async (window) => {
      const { status, body } = await api.get(`/sources/${source}/stats?window=${window}`);
      expect([status, body.errors[0].field]).toEqual([400, 'window']);
    });

    it('return 404 for what does not exist', async () => {
      for (const path of [
        'sources/dc_000000000000000000',
        'workflows/p_000000000000000000',
        'webhooks/wh_000000000000000000',
        `webhooks/${source}`,
      ])
        expect((await api.get(`/${path}/stats`)).status).toBe(404);
    });

    needing('accounts').it('statistics of another account do not exist', async () => {
      const otherAccount = await world().system.account();
      expect((await otherAccount.get(`/sources/${source}/stats`)).status).toBe(404);
    });
  });

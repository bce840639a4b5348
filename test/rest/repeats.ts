import { beforeAll, expect, it } from '@jest/globals';
import type { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { operations } from '../support/openapi.js';
import { needing } from '../support/target.js';
import { registerWorkflow } from '../support/workflows.js';
import { STAMP, type World } from './world.js';

const CODE = `export default {
  name: 'Repeated', key: 'repeated-${STAMP}', version: '0.0.1',
  props: { text: { type: 'string', optional: true, options() { return ['a']; } } },
  run(event) { this.$emit(event); },
};`;

/** A request by its path below /v1 and its body. */
type Request = [path: string, body?: object];

/** Every POST of the API, sent twice with the same Idempotency-Key. */
export const repeats = (world: () => World) =>
  needing('receiver').describe('a repeated POST', () => {
    let api: Api;
    const at = { source: '', component: '', webhook: '', workflow: `p_${Date.now().toString(36)}repeats`, delivery: '' };

    beforeAll(async () => {
      api = await world().system.account();
      const source = await api.source(CODE);
      [at.source, at.component] = [source.id as string, source.component_id as string];
      at.webhook = await api.webhook(`${world().receiver.url}repeats`);
      await api.subscribe(at.source, at.webhook);
      await registerWorkflow(world().system.brokers, at.workflow, api.account.id);
      await eventually(async () => expect((await api.get(`/workflows/${at.workflow}/streams`)).status).toBe(200));
      await api.post(`/sources/${at.source}/events`, { first: true });
      at.delivery = await eventually(async () => {
        const { data } = (await api.get(`/webhooks/${at.webhook}/deliveries`)).body;
        expect(data[0]?.status).toBe('succeeded');
        return data[0].id as string;
      });
    });

    const posts: Record<string, () => Request> = {
      createComponent: () => ['/components', { component_code: CODE }],
      createConnection: () => ['/connections', { app: 'repeated', credentials: { token: 'x' } }],
      createSource: () => ['/sources', { component_id: at.component }],
      runSource: () => [`/sources/${at.source}/run`, { event: 1 }],
      listSourcePropOptions: () => [`/sources/${at.source}/props/text/options`, {}],
      listComponentPropOptions: () => [`/components/${at.component}/props/text/options`, {}],
      publishSourceEvents: () => [`/sources/${at.source}/events`, { published: 1 }],
      publishWorkflowEvents: () => [`/workflows/${at.workflow}/events`, { published: 1 }],
      createSubscription: () => [`/subscriptions?emitter_id=dc_*&listener_id=${at.webhook}`],
      createAutoSubscription: () => [`/auto_subscriptions?event_name=default&listener_id=${at.webhook}`],
      createWebhook: () => [`/webhooks?url=${encodeURIComponent(`${world().receiver.url}repeats-new`)}`],
      rotateWebhookSecret: () => [`/webhooks/${at.webhook}/secret/rotate`],
      retryDelivery: () => [`/webhooks/${at.webhook}/deliveries/${at.delivery}/retry`],
      testWebhook: () => [`/webhooks/${at.webhook}/test`],
      recoverDeliveries: () => [`/webhooks/${at.webhook}/recover?since=2026-01-01T00:00:00Z`],
      createReplay: () => ['/replays', { emitter_id: at.source, listener_id: at.webhook, from: 0, to: '9999999999999-0' }],
      createKey: () => ['/keys', { name: 'repeated' }],
    };

    it('is tested for every operation', () => {
      const all = operations.filter(({ method }) => method === 'POST').map(({ operationId }) => operationId);
      expect(Object.keys(posts).sort()).toEqual(all.sort());
    });

    it.each(Object.keys(posts))('has the response of the first one and no other effect: %s', async (name) => {
      const [path, body] = posts[name]!();
      const key = { 'idempotency-key': `repeats-${name}-${STAMP}` };
      const first = await api.send('POST', path, body, key);
      expect(first.status).toBeLessThan(300);
      const second = await api.send('POST', path, body, key);
      expect([second.status, second.body]).toEqual([first.status, first.body]);
      expect([first.headers['idempotency-replayed'], second.headers['idempotency-replayed']]).toEqual([undefined, 'true']);
      const other = await api.send('POST', path, { ...body, include: 'id' }, key);
      expect(other.status).toBe(422);
    });

    it('has left one run, one published event and one delivery of a test', async () => {
      await eventually(async () => {
        const { data } = (await api.get(`/sources/${at.source}/runs`)).body;
        expect(data.filter(({ trigger }: { trigger: string }) => trigger === 'manual')).toHaveLength(1);
      });
      const { data } = (await api.get(`/sources/${at.source}/event_summaries?limit=100`)).body;
      expect(data.filter(({ event }: { event: { published?: number } }) => event.published === 1)).toHaveLength(1);
      const { data: webhooks } = (await api.get('/users/me/webhooks')).body;
      expect(webhooks).toHaveLength(2);
    });
  });

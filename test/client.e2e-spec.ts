import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type EventSummary, SluiceClient, SluiceError, verifyWebhook } from '@sluice/client';
import { eventually } from './support/eventually.js';
import { operations } from './support/openapi.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';
import { registerWorkflow } from './support/workflows.js';

const CODE = `export default {
  name: 'Client Story', version: '0.0.1', key: 'client-story',
  props: { db: '$.service.db', text: { type: 'string', options: ['a', 'b'] }, chat: { type: 'app', app: 'chat', optional: true } },
  run(event) { this.$emit({ text: this.text, event }); },
};`;

let system: System;
let receiver: Receiver;
let sluice: SluiceClient;
const called = new Set<string>();

beforeAll(async () => {
  [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  const { account } = await system.account();
  const client = new SluiceClient({ url: system.apiUrl, key: account.api_key });
  // remembers which operations were called
  sluice = new Proxy(client, {
    get: (target, name: keyof SluiceClient) => {
      called.add(name);
      return target[name];
    },
  });
});
afterAll(async () => {
  await Promise.all([system?.stop(), receiver?.close()]);
});

/** A workflow of this account that is known. */
async function workflow(owner_id: string): Promise<string> {
  const id = `p_${Date.now().toString(36)}client`;
  await registerWorkflow(system.brokers, id, owner_id);
  await eventually(() => sluice.listWorkflowStreams({ path: { id } }));
  return id;
}

needing('receiver').describe('the generated client', () => {
  it('calls every operation', async () => {
    const { data: user } = await sluice.getCurrentUser();

    const { data: component } = await sluice.createComponent({ body: { component_code: CODE } });
    expect((await sluice.getComponent({ path: { keyOrId: 'client-story' } })).data.id).toBe(component.id);
    const registry: string[] = [];
    for await (const { key } of sluice.each((query) => sluice.listRegistry({ query }))) registry.push(key);
    expect(registry).toContain('manual');
    expect((await sluice.getRegisteredComponent({ path: { key: 'manual' } })).data.name).toBe('Manual');
    const options = { options: ['a', 'b'], context: null };
    expect((await sluice.listComponentPropOptions({ path: { keyOrId: component.id, name: 'text' }, body: {} })).data).toEqual(options);

    const { data: connection } = await sluice.createConnection({ body: { app: 'chat', credentials: { token: 'secret' } } });
    const connectionPath = { path: { id: connection.id } };
    expect((await sluice.patchConnection({ ...connectionPath, body: { name: 'Chat' } })).data.name).toBe('Chat');
    expect((await sluice.getConnection(connectionPath)).data.credentials).toEqual({ token: '••••••••' });
    expect((await sluice.listConnections()).data).toHaveLength(1);

    const { data: source } = await sluice.createSource({
      body: { component_id: component.id, configured_props: { text: 'a', chat: { authProvisionId: connection.id } } },
    });
    const path = { id: source.id };
    expect((await sluice.getSource({ path })).data.name_slug).toBe('client-story');
    expect((await sluice.patchSource({ path, body: { name: 'Story', configured_props: { text: 'b' } } })).data.name).toBe('Story');
    expect((await sluice.updateSource({ path, body: { component_id: component.id, name: 'Client' } })).data.active).toBe(true);
    expect((await sluice.listSources({ query: { limit: 1 } })).page_info.total_count).toBe(1);
    expect((await sluice.listSourcePropOptions({ path: { ...path, name: 'text' }, body: {} })).data).toEqual(options);

    const { data: webhook } = await sluice.createWebhook({ query: { url: `${receiver.url}client`, name: 'Client' } });
    const hook = { path: { id: webhook.id } };
    expect((await sluice.updateWebhook({ ...hook, body: { description: 'all of it' } })).data.description).toBe('all of it');
    expect((await sluice.patchWebhook({ ...hook, body: { name: null } })).data.name).toBeNull();
    expect((await sluice.getWebhook(hook)).data.url).toBe(`${receiver.url}client`);
    expect((await sluice.listWebhooks()).data).toHaveLength(1);
    const { data: oldSecret } = await sluice.getWebhookSecret(hook);
    const { data: newSecret } = await sluice.rotateWebhookSecret(hook);
    expect((await sluice.testWebhook(hook)).data.status_code).toBe(200);

    const pair = { emitter_id: source.id, listener_id: webhook.id };
    expect((await sluice.createSubscription({ query: pair })).data).toHaveLength(1);
    expect((await sluice.listSubscriptions()).data).toMatchObject([pair]);
    const auto = { listener_id: webhook.id, event_name: '$errors' };
    expect((await sluice.createAutoSubscription({ query: auto })).data).toMatchObject(auto);
    expect((await sluice.listAutoSubscriptions()).data).toHaveLength(1);
    expect((await sluice.deleteAutoSubscription({ query: auto })).data).toHaveLength(1);

    // the signature of a real delivery
    await sluice.publishSourceEvents({ path, body: { order: 17 } });
    const delivered = await eventually(() => {
      const found = receiver.received.find(({ body }) => body?.order === 17);
      expect(found).toBeDefined();
      return found!;
    });
    for (const { secret } of [oldSecret, newSecret])
      expect(await verifyWebhook(secret, delivered.headers, delivered.text)).toEqual({ order: 17 });
    await expect(verifyWebhook(newSecret.secret, delivered.headers, '{"order":18}')).rejects.toThrow('no signature matches');

    const { data: run } = await sluice.runSource({ path, body: { event: [1, 'any JSON'] } });
    await eventually(async () => expect((await sluice.listRuns({ path })).data.map(({ id }) => id)).toContain(run.id));
    const events = await eventually(async () => {
      const { data } = await sluice.listSourceEvents({ path, query: { expand: 'event' } });
      expect(data).toHaveLength(2);
      return data;
    });
    expect(events[0]!.event).toEqual({ text: 'b', event: [1, 'any JSON'] });
    expect((await sluice.pollSourceEvents({ path })).data).toHaveLength(2);
    expect((await sluice.listSourceLogs({ path })).data).toEqual([]);
    expect((await sluice.listSourceStreams({ path })).data).toMatchObject([{ event_name: '', count: 2 }]);

    const [delivery] = await eventually(async () => {
      const { data } = await sluice.listDeliveries(hook);
      expect(data.filter(({ status }) => status === 'succeeded')).toHaveLength(2);
      return data;
    });
    expect((await sluice.retryDelivery({ path: { ...hook.path, deliveryId: delivery!.id } })).data).toBeDefined();
    const ofEvent = await sluice.listSourceEventDeliveries({ path: { ...path, eventId: events[0]!.id } });
    expect(ofEvent.data).toMatchObject([{ listener_id: webhook.id, kind: 'webhook' }]);
    expect((await sluice.recoverDeliveries({ ...hook, query: { since: '2026-01-31T12:00:00Z' } })).data).toEqual({ count: 0 });

    const part = { ...pair, from: events[1]!.id, to: events[0]!.id };
    expect((await sluice.createReplay({ body: { ...part, dry_run: true } })).data).toEqual({ events: 2 });
    const { data: replay } = await sluice.createReplay({ body: part });
    if (!('id' in replay)) throw new Error('a replay has an id');
    expect((await sluice.getReplay({ path: { id: replay.id } })).data.events).toBe(2);
    expect((await sluice.cancelReplay({ path: { id: replay.id } })).data.id).toBe(replay.id);

    for (const stats of [await sluice.getSourceStats({ path }), await sluice.getWebhookStats({ ...hook, query: { window: '1h' } })])
      expect(stats.data.buckets.length).toBeGreaterThan(0);

    const { data: key } = await sluice.createKey({ body: { name: 'reader', scope: 'read' } });
    const reader = new SluiceClient({ url: system.apiUrl, key: () => key.key });
    expect((await reader.listKeys()).data.map(({ id }) => id)).toContain(key.id);
    await expect(reader.deleteSource({ path })).rejects.toMatchObject({ status: 403 });
    await sluice.listKeys();
    await sluice.deleteKey({ path: { id: key.id } });
    await expect(reader.getCurrentUser()).rejects.toBeInstanceOf(SluiceError);

    const flow = { path: { id: await workflow(user.id) } };
    await sluice.publishWorkflowEvents({ ...flow, body: 'hello' });
    const [first] = await eventually(async () => {
      const { data } = await sluice.listWorkflowEvents(flow);
      expect(data).toMatchObject([{ event: 'hello' }]);
      return data;
    });
    expect((await sluice.listWorkflowErrors(flow)).data).toEqual([]);
    expect((await sluice.listWorkflowEventDeliveries({ path: { ...flow.path, eventId: first!.id } })).data).toEqual([]);
    expect((await sluice.getWorkflowStats(flow)).data.bucket_s).toBe(3600);

    expect((await sluice.deleteSubscription({ query: pair })).data).toMatchObject([pair]);
    await sluice.deleteSourceEvents({ path });
    await sluice.deleteWebhook(hook);
    await sluice.deleteSource({ path });
    await sluice.deleteConnection(connectionPath);
    await expect(sluice.getSource({ path })).rejects.toMatchObject({ status: 404 });

    // SluiceClient.events calls the streams
    const streams = ['streamSourceEvents', 'streamWorkflowEvents'];
    const missing = operations.map(({ operationId }) => operationId).filter((name) => !called.has(name) && !streams.includes(name));
    expect(missing).toEqual([]);
  });
});

describe('SluiceClient', () => {
  it('streams events as they are emitted, in order, whole, and from the given event on', async () => {
    const { data: source } = await sluice.createSource({ body: { key: 'manual' } });
    const long = 'x'.repeat(3000);
    await sluice.publish(source.id, { n: -1 });
    const stop = new AbortController();
    const got: EventSummary[] = [];
    const connected = new Promise<void>((resolve) => {
      void (async () => {
        const onState = (state: { connected: boolean }): void => (state.connected ? resolve() : undefined);
        for await (const event of sluice.events(source.id, { signal: stop.signal, onState })) got.push(event);
      })();
    });
    await connected;
    for (let n = 0; n < 5; n++) await sluice.publish(source.id, { n, long });
    await eventually(() => expect(got.map(({ event }) => (event as { n: number }).n).slice(-5)).toEqual([0, 1, 2, 3, 4]));
    expect(got.at(-1)?.event).toEqual({ n: 4, long });
    const again: unknown[] = [];
    for await (const { event } of sluice.events(source.id, { after: got.at(-3)!.id })) {
      again.push((event as { n: number }).n);
      if (again.length === 2) break;
    }
    expect(again).toEqual([3, 4]);
    stop.abort();
  });

  it('publishes an emit id once, and streams the events of a custom stream', async () => {
    const { data: source } = await sluice.createSource({ body: { key: 'manual' } });
    for (let n = 0; n < 2; n++) expect(await sluice.publish(source.id, 'order', { eventName: 'orders', id: 'order-17' })).toBe('order-17');
    await sluice.publish(source.id, 'last', { eventName: 'orders' });
    const got: unknown[] = [];
    for await (const { event } of sluice.events(source.id, { after: '0-0', eventName: 'orders' })) {
      got.push(event);
      if (event === 'last') break;
    }
    expect(got).toEqual(['order', 'last']);
  });
});

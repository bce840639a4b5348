import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { TestRegistry } from '../apps/runtime/src/sandbox/packages/registry-for-tests.js';
import type { Api } from './support/api.js';
import { eventually } from './support/eventually.js';
import { startSystem, type System } from './support/system.js';
import { can, needing } from './support/target.js';

const registry = new TestRegistry();
let system: System;
let api: Api;

beforeAll(async () => {
  registry.publish('greeting', '1.0.0', { files: { 'index.js': 'exports.hello = (name) => `hello ${name}`;' } });
  registry.publish('greeting', '2.0.0', { files: { 'index.js': 'exports.hello = (name) => `hi ${name}`;' } });
  await registry.start();
  const variables = can('processes') ? { runtime: { SLUICE_PACKAGES: 'any', NPM_CONFIG_REGISTRY: registry.url } } : {};
  system = await startSystem({ variables });
  api = await system.account();
});
afterAll(async () => {
  await system?.stop();
  await registry.stop();
});

// the registry is one of this machine
needing('processes').describe('a component that imports packages', () => {
  const code = (specifier: string) =>
    `import { hello } from '${specifier}';\nexport default { name: 'Greeter', run() { this.$emit(hello('you')); } };`;
  const events = async (id: string) => (await api.get(`/sources/${id}/event_summaries`)).body.data.map(({ event }: any) => event);

  it('runs with the versions to which its imports were resolved, also when the registry is gone', async () => {
    const newest = (await api.post('/sources', { component_code: code('greeting') })).body.data;
    const exact = (await api.post('/sources', { component_code: code('greeting@1.0.0') })).body.data;
    const component = (await api.get(`/components/${exact.component_id}`)).body.data;
    expect(component).toMatchObject({ code: code('greeting@1.0.0'), packages: { 'greeting@1.0.0': '1.0.0' } });
    await registry.stop();
    try {
      await api.post(`/sources/${newest.id}/run`);
      await api.post(`/sources/${exact.id}/run`);
      await eventually(async () => expect(await events(newest.id)).toEqual(['hi you']));
      await eventually(async () => expect(await events(exact.id)).toEqual(['hello you']));
      const again = await api.post('/components', { component_code: code('greeting@1.0.0') });
      expect(again.body.data.packages).toEqual({ 'greeting@1.0.0': '1.0.0' });
    } finally {
      await registry.start();
    }
  });

  it('is refused with the reason if a package does not exist', async () => {
    const { status, body } = await api.post('/components', { component_code: code('no-such-package') });
    expect(status).toBe(400);
    expect(body.errors).toEqual([
      {
        field: 'component_code',
        message: 'the component is invalid: The registry has no package "no-such-package"',
      },
    ]);
  });
});

describe('a component with mistakes', () => {
  it('is created with warnings that name the line and the column', async () => {
    const { body } = await api.post('/components', {
      component_code: 'export default {\n  name: "n",\n  hooks: { deply() {} },\n  runn() {},\n};',
    });
    expect(body.data.warnings).toEqual([
      { message: '`hooks.deply` is never called; did you mean `deploy`?', line: 3, column: 12 },
      { message: '`runn` is not a member of a component, so it has no effect; did you mean `run`?', line: 4, column: 3 },
    ]);
    expect((await api.get(`/components/${body.data.id}`)).body.data.warnings).toEqual(body.data.warnings);
  });

  it.each([
    ['$.interface.apphook', 'register its endpoint as a webhook'],
    ['$.interface.email', 'posts incoming messages to a URL'],
  ])('cannot become a source with %s, and the error says what to use instead', async (type, instead) => {
    const { status, body } = await api.post('/sources', { component_code: `export default { name: "n", props: { hook: "${type}" } }` });
    expect(status).toBe(400);
    expect(body.error).toContain(type);
    expect(body.error).toContain(instead);
  });
});

describe('a receiver of the registry', () => {
  it('stores what its sender has signed before it responds, and refuses the rest with 401', async () => {
    const { data } = (await api.post('/sources', { key: 'github', configured_props: { secret: 'shared' } })).body;
    const send = (body: string, signed = body, id = 'delivery-1') =>
      fetch(data.configured_props.http.endpoint_url as string, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-github-event': 'push',
          'x-github-delivery': id,
          'x-hub-signature-256': `sha256=${createHmac('sha256', 'shared').update(signed).digest('hex')}`,
        },
        body,
      });
    expect((await send('{"n":1}')).status).toBe(200);
    expect((await send('{"n":2}', '{"n":1}', 'delivery-2')).status).toBe(401);
    expect((await send('{"n":1}')).status).toBe(200);
    expect((await send('{"n":3}', '{"n":3}', 'delivery-3')).status).toBe(200);
    await eventually(async () => {
      const { body } = await api.get(`/sources/${data.id}/event_summaries`);
      expect(body.data.map(({ event }: any) => event)).toEqual([
        { id: 'delivery-3', type: 'push', payload: { n: 3 } },
        { id: 'delivery-1', type: 'push', payload: { n: 1 } },
      ]);
    });
  });
});

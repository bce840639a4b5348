import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { verifyWebhook } from '@sluice/client';
import type { Api } from './support/api.js';
import { CommandLine } from './support/command-line.js';
import { eventually } from './support/eventually.js';
import { Receiver } from './support/receiver.js';
import { joinSystem, type System } from './support/system.js';
import { needing } from './support/target.js';

const ECHO = `export default {
  name: 'Echo', version: '0.0.1',
  props: { text: { type: 'string', default: 'none' }, token: { type: 'string', secret: true, optional: true } },
  run(event) {
    console.log('running', this.text);
    if (event?.fail) throw new TypeError(event.fail);
    this.$emit({ text: this.text, event });
  },
};
`;

let system: System;
let receiver: Receiver;
let api: Api;
let cli: CommandLine;

beforeAll(async () => {
  [system, receiver] = await Promise.all([joinSystem(), Receiver.start()]);
  api = await system.account();
  cli = await CommandLine.of(api);
  write('echo.mjs', ECHO);
});
afterAll(async () => {
  cli?.close();
  await Promise.all([system?.stop(), receiver?.close()]);
});

/** Writes a file in the working directory of the commands. */
function write(file: string, content: string): string {
  const path = join(cli.folder, file);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
  return path;
}
const source = async (name: string) =>
  (await api.get('/users/me/sources?limit=100')).body.data.find((each: any) => each.name_slug === name);

describe('deploy', () => {
  it('creates a source, changes the one of the same name, and touches nothing that is right already', async () => {
    expect(await cli.output('deploy', 'echo.mjs', '-p', 'text=17', '-p', 'token=secret')).toMatch(/^created echo \(dc_/);
    const { id, updated_at } = await source('echo');
    expect(await cli.output('deploy', 'echo.mjs', '-p', 'text="17"', '-p', 'token=secret')).toBe(`unchanged echo (${id})\n`);
    expect(await source('echo')).toMatchObject({ id, updated_at, configured_props: { text: '17' } });
    write('echo.mjs', ECHO.replace("'0.0.1'", "'0.0.2'"));
    expect(await cli.output('deploy', 'echo.mjs')).toBe(`updated echo (${id})\n`);
    expect((await source('echo')).configured_props.text).toBe('17');
    expect((await cli.json('update', 'echo', '-p', 'text=hello', '--deactivate')).active).toBe(false);
    await cli.output('on', 'echo');
    expect(await source('echo')).toMatchObject({ active: true, configured_props: { text: 'hello' } });
  });

  it('deploys a registered component by key, and a file with the files that it imports', async () => {
    expect(await cli.output('deploy', 'http-request', '--name', 'orders')).toContain('endpoint: http');
    write(
      'parts/text.mjs',
      "export const text = 'from a neighbour';\nexport const broken = () => {\n  throw new RangeError('too far');\n};",
    );
    write(
      'two.mjs',
      "import { text, broken } from './parts/text.mjs';\nexport default { name: 'Two', run(e) { if (e?.fail) broken(); this.$emit(text); } };",
    );
    await cli.output('deploy', 'two.mjs');
    expect(await cli.output('run', 'two', '--data', '{}')).toMatch(/^succeeded: 1 emitted/);
    expect(await cli.output('runs', 'two')).toMatch(/ manual +succeeded +1 /);
    expect(await cli.json('events', 'two')).toMatchObject([{ event: 'from a neighbour' }]);
  });

  it('shows likely mistakes with the file, line and column, also of a file that is bundled', async () => {
    const code = (more: string) => `${more}export default {\n  name: 'Careless',\n  hooks: { actvate() {} },\n  run() {},\n};\n`;
    write('careless.mjs', code(''));
    const deployed = await cli.run(['deploy', 'careless.mjs', '-o', 'json']);
    expect(deployed).toMatchObject({ code: 0, stderr: expect.stringMatching(/^careless\.mjs:3:\d+: warning: .*actvate/) });
    expect(JSON.parse(deployed.stdout).name_slug).toBe('careless');
    write('careless.mjs', code("import './parts/text.mjs';\n"));
    expect((await cli.run(['deploy', 'careless.mjs'])).stderr).toMatch(/^careless\.mjs:4:\d+: warning: .*actvate/);
    await cli.output('delete', 'careless', '--yes');
  });

  it('reports what is wrong: usage 2, authentication 3, not found 4, unreachable 5, anything else 1', async () => {
    const results = await Promise.all([
      cli.run(['deploy', 'nowhere.mjs']),
      cli.run(['events', 'echo', '-n', 'x']),
      cli.run(['whoami'], { env: { SLUICE_API_KEY: 'slk_wrong' } }),
      cli.run(['whoami'], { env: { SLUICE_API_KEY: undefined } }),
      cli.run(['get', 'nothing-like-it']),
      cli.run(['whoami'], { env: { SLUICE_URL: 'http://127.0.0.1:9' } }),
      cli.run(['deploy', 'interval-timer', '-p', 'timer=soon']),
      cli.run(['admin', 'key', 'list']),
    ]);
    expect(results.map(({ code }) => code)).toEqual([2, 2, 3, 3, 4, 5, 1, 2]);
    expect(results[0].stderr).toBe('sluice: there is no file nowhere.mjs\n');
    expect(results[6].stderr).toContain('configured_props.timer must be an object with intervalSeconds or cron');
  });
});

describe('a script for the command line of Pipedream', () => {
  it('works with another name of the command, without a terminal', async () => {
    write('scripted.mjs', ECHO);
    write('scripted-2.mjs', ECHO.replace("default: 'none'", "default: 'of the new code'"));
    // -f follows until it is stopped
    const script = `set -e
sluice deploy scripted.mjs
sluice list
sluice describe scripted
sluice update scripted --code scripted-2.mjs
sluice update scripted --deactivate
sluice update scripted --activate
sluice run scripted -d '{"n":1}'
until sluice logs scripted | grep running; do sleep 0.2; done
sluice events -n 5 scripted
sluice events scripted -n 5
sluice events -f scripted > followed & following=$!
until grep 'new code' followed; do sleep 0.2; done
kill $following
sluice delete scripted
`;
    const { code, stdout, stderr } = await cli.script(script);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('sluice:') });
    expect(stdout).toMatch(/^created scripted \(dc_\w+\)\n/);
    expect(stdout).toMatch(/^dc_\w+ +scripted +on /m);
    expect(stdout).toMatch(/^name_slug: scripted$/m);
    expect(stdout).toContain('running of the new code');
    expect(stdout.match(/^20.* {2}\{"text":"of the new code","event":\{"n":1\}\}$/gm)).toHaveLength(3);
    expect(await source('scripted')).toBeUndefined();
  });
});

describe('resources', () => {
  it('are listed, found by id, name and unique beginning, switched and deleted', async () => {
    await cli.output('deploy', 'manual', '--name', 'resource-one');
    await cli.output('deploy', 'manual', '--name', 'resource-two');
    const { id } = await source('resource-one');
    for (const name of [id, 'resource-one', 'resource-o']) expect((await cli.json('get', name)).id).toBe(id);
    expect((await cli.run(['get', 'resource'])).stderr).toMatch(
      /^sluice: the resource resource is ambiguous: resource-two \(dc_\w+\), resource-one/,
    );
    expect(await cli.output('list', '-s', 'RESOURCE')).toMatch(
      /^ID +NAME +STATE .*\ndc_\w+ +resource-two +on .*\ndc_\w+ +resource-one +on/,
    );
    expect(
      (await cli.output('list', 'components', '-o', 'ndjson'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).key),
    ).toContain('manual');
    const { component_id } = await source('echo');
    for (const name of [[component_id], ['component', component_id]]) expect((await cli.json('get', ...name)).id).toBe(component_id);
    expect((await cli.run(['get', 'component', 'sc_none'])).code).toBe(4);
    await cli.output('off', 'resource-two');
    expect((await source('resource-two')).active).toBe(false);
    await cli.output('delete', 'resource-two', '--yes');
    expect((await cli.run(['delete', 'resource-two', '--yes'])).code).toBe(4);
  });
});

describe('events, logs and errors', () => {
  it('show the last ones, oldest first, and follow', async () => {
    await cli.output('deploy', 'echo.mjs', '--name', 'reader');
    for (let n = 0; n < 3; n++) await cli.output('publish', 'reader', '--data', `{"n":${n}}`);
    await eventually(async () => expect(await cli.json('events', 'reader')).toHaveLength(3));
    expect((await cli.json('events', 'reader', '-n', '2')).map(({ event }: any) => event.n)).toEqual([1, 2]);
    const following = cli.start(['events', '-f', '-n', '1', 'reader', '-o', 'ndjson']);
    const shown = () =>
      following
        .out()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event.n as number);
    await eventually(() => expect(shown()).toEqual([2]));
    await cli.output('publish', 'reader', '-d', '{"n":3}');
    await eventually(() => expect(shown()).toEqual([2, 3]));
    following.child.kill('SIGINT');
    expect((await following.ended).code).toBe(130);

    const failed = await cli.run(['run', 'reader', '-d', '{"fail":"out of paper"}']);
    expect(failed).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^failed: 0 emitted/),
      stderr: expect.stringContaining('out of paper'),
    });
    await eventually(async () =>
      expect(await cli.output('errors', 'reader')).toMatch(/TypeError: out of paper\n\s+at .*\(component\.js:6:\d+\)/),
    );
    await eventually(async () => expect(await cli.output('logs', 'reader')).toContain('running none'));
  });

  it('listen without a server shows the events of several sources, each with the name of its source', async () => {
    for (const name of ['shown-one', 'shown-two']) await cli.output('deploy', 'manual', '--name', name);
    const listening = cli.start(['listen', '--source', 'shown-one', '--source', 'shown-two', '--stream', '*']);
    await eventually(() => expect(listening.err().match(/ready/g)).toHaveLength(2));
    await cli.output('publish', 'shown-one', '-d', '{"n":1}', '--stream', 'orders');
    await eventually(() => expect(listening.out()).toMatch(/^shown-one {2}20\S+ {2}\S+ {2}orders {2}\{"n":1\}\n$/));
    await cli.output('publish', 'shown-two', '-d', '{"n":2}');
    await eventually(() => expect(listening.out()).toMatch(/\nshown-two {2}20\S+ {2}\S+ {2}\{"n":2\}\n$/));
    await cli.output('delete', 'shown-one');
    await eventually(() => expect(listening.err()).toContain('shown-one was deleted'));
    await cli.output('publish', 'shown-two', '-d', '{"n":3}');
    await eventually(() => expect(listening.out()).toMatch(/\{"n":3\}\n$/));
    await cli.output('delete', 'shown-two');
    expect(await listening.ended).toMatchObject({ code: 4, stderr: expect.stringContaining('nothing is left to listen to') });
    expect((await cli.run(['listen', '--source', 'any', '--webhook', 'x'])).code).toBe(2);
  });

  it('publishes from standard input, once per emit id, and to a custom stream', async () => {
    await cli.output('deploy', 'manual', '--name', 'published');
    for (let n = 0; n < 2; n++) {
      const { code, stdout } = await cli.run(['publish', 'published', '-d', '-', '--id', 'one', '--stream', 'orders'], { input: '"text"' });
      expect([code, stdout]).toEqual([0, 'one\n']);
    }
    await cli.output('publish', 'published', '-d', '2', '--stream', 'orders');
    await eventually(async () =>
      expect((await cli.json('events', 'published', '--stream', '*')).map(({ event }: any) => event)).toEqual(['text', 2]),
    );
  });
});

needing('receiver').describe('webhooks', () => {
  it('listen posts events with headers that a receiver can verify, in order, and waits while the receiver is down', async () => {
    await cli.output('deploy', 'manual', '--name', 'listened');
    const secret = 'whsec_c2VjcmV0IG9mIGEgbGlzdGVuZXI=';
    const failing = await Receiver.start();
    const { url } = failing;
    await failing.close();
    const up = cli.start(['listen', `${receiver.url}listened`, '--source', 'listened'], { env: { SLUICE_WEBHOOK_SECRET: secret } });
    const down = cli.start(['listen', url, '--source', 'listened']);
    await eventually(() => expect([up.err(), down.err()]).toEqual([expect.stringContaining('ready'), expect.stringContaining('ready')]));
    for (let n = 0; n < 5; n++) await cli.output('publish', 'listened', '-d', `{"n":${n}}`, '--id', `订单 ${n}`);
    const received = () => receiver.received.filter(({ path }) => path === '/listened');
    await eventually(() => expect(received().map(({ body }) => body.n as number)).toEqual([0, 1, 2, 3, 4]));
    for (const { headers, text } of received()) await verifyWebhook(secret, headers, text);
    expect(received()[0]!.headers).toMatchObject({
      'ce-type': 'default',
      'ce-source': (await source('listened')).id,
      'webhook-id': expect.stringMatching(/^msg_[0-9a-f]{32}$/),
    });
    await eventually(() => expect(down.err()).toContain('cannot be reached'));
    expect(down.out()).toBe('');
    up.child.kill();
    down.child.kill();
  });

  it('subscribe delivers events to a URL, which gets one webhook, and unsubscribe ends it', async () => {
    await cli.output('deploy', 'manual', '--name', 'subscribed');
    const { id } = await source('subscribed');
    const url = `${receiver.url}subscribed`;
    const first = await cli.run(['subscribe', 'subscribed', url, '--name', 'mailbox']);
    expect(first).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/^created webhook mailbox \(wh_\w+\); sluice secret wh_/),
    });
    expect(first.stderr).toContain(`${url} gets the events of subscribed\n`);
    const again = await cli.json('subscribe', 'subscribed', url);
    expect(await cli.json('subscribe', 'subscribed', 'mailbox')).toEqual(again);
    expect(await cli.json('subscribe', 'subscribed', 'mailbox', '--stream', '$errors')).toMatchObject({
      emitter_id: id,
      event_name: '$errors',
    });
    expect(await cli.json('list', 'subscriptions')).toEqual(expect.arrayContaining([again]));
    await cli.output('publish', 'subscribed', '-d', '1');
    const received = () => receiver.received.filter(({ path }) => path === '/subscribed');
    await eventually(() => expect(received()).toHaveLength(1));
    expect(await cli.run(['unsubscribe', 'subscribed', 'mailbox'])).toMatchObject({
      code: 0,
      stderr: 'mailbox no longer gets the events of subscribed\n',
    });
    expect(await cli.json('unsubscribe', 'subscribed', url, '--stream', '$errors')).toMatchObject({ emitter_id: id, deleted: true });
    expect((await api.get('/users/me/subscriptions')).body.data.filter(({ emitter_id }: any) => emitter_id === id)).toEqual([]);
    expect((await cli.run(['unsubscribe', 'subscribed', 'mailbox'])).code).toBe(4);
    expect((await cli.run(['unsubscribe', 'subscribed', url.slice(0, -1)])).code).toBe(4);
    expect((await cli.run(['subscribe', 'subscribed', 'mailbox', '--name', 'x'])).code).toBe(2);
    expect((await cli.run(['subscribe', 'subscribed', 'https://'])).code).toBe(2);
    expect((await cli.run(['subscribe', 'subscribed', 'nothing'])).code).toBe(4);
  });

  it('deliveries, retry, recover, replay, test and verify work on real deliveries', async () => {
    const webhook = await api.webhook(`${receiver.url}delivered`);
    await cli.output('deploy', 'manual', '--name', 'delivered');
    await api.subscribe((await source('delivered')).id, webhook);
    await cli.output('publish', 'delivered', '-d', '{"order":17}');
    const received = () => receiver.received.filter(({ path }) => path === '/delivered');
    await eventually(() => expect(received()).toHaveLength(1));

    const request = (text: string) =>
      `POST / HTTP/1.1\n${Object.entries(received()[0]!.headers)
        .map(([name, value]) => `${name}: ${String(value)}\n`)
        .join('')}\n${text}`;
    expect(await cli.run(['verify', '--webhook', webhook], { input: request(received()[0]!.text) })).toMatchObject({
      code: 0,
      stdout: 'authentic\n',
    });
    expect(await cli.run(['verify', '--webhook', webhook], { input: request('{"order":18}') })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not authentic'),
    });
    const secret = (await cli.output('secret', webhook)).trim();
    await verifyWebhook(secret, received()[0]!.headers, received()[0]!.text);
    expect(await cli.json('secret', webhook, '--rotate')).toMatchObject({
      secret: expect.not.stringContaining(secret),
      previous_expires_at: expect.any(Number),
    });

    const [delivery] = await eventually(async () => {
      const list = await cli.json('deliveries', webhook);
      expect(list).toMatchObject([{ status: 'succeeded' }]);
      return list as { id: string; event_id: string }[];
    });
    expect(await cli.output('retry', webhook, delivery!.id)).toMatch(/^succeeded: 20\d, \d+ ms\n$/);
    expect(received()).toHaveLength(2);
    await eventually(async () => expect(await cli.output('deliveries', 'delivered', delivery!.event_id)).toContain('succeeded'));
    expect(await cli.output('recover', webhook, '--since', '2026-01-31T12:00:00Z')).toBe(
      'no delivery was given up since 2026-01-31T12:00:00Z\n',
    );
    expect(await cli.output('replay', 'delivered', webhook, '--from', '0', '--dry-run')).toBe('1 event\n');
    expect(await cli.output('replay', 'delivered', webhook, '--from', delivery!.event_id)).toMatch(
      /^rpl_\w+ done: 1 of 1 delivered, 0 failed\n$/,
    );
    expect(await cli.output('test', webhook)).toMatch(/^succeeded: 20\d, \d+ ms\n$/);
  });
});

needing('receiver').describe('a webhook whose receiver fails', () => {
  it('retry shows the outcome of the attempt and the next one, and recover what is pending', async () => {
    const webhook = await api.webhook(`${receiver.url}failing`);
    await cli.output('deploy', 'manual', '--name', 'failing');
    await api.subscribe((await source('failing')).id, webhook);
    receiver.respondWith = ({ path }) => (path === '/failing' ? 500 : 200);
    await cli.output('publish', 'failing', '-d', '1');
    const [delivery] = await eventually(async () => {
      const list = await cli.json('deliveries', webhook);
      expect(list).toMatchObject([{ status: 'pending', attempts: [{ status_code: 500 }] }]);
      return list as { id: string }[];
    });
    expect(await cli.run(['retry', webhook, delivery!.id])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^failed: 500, \d+ ms; next attempt 20\d\d-/),
      stderr: 'sluice: the receiver returned 500\n',
    });
    expect(await cli.run(['recover', webhook, '--since', '0'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^no delivery was given up since 0\n1 delivery was pending before, the oldest since 20.*, next attempt 20/,
      ),
      stderr: expect.stringContaining(`sluice retry ${webhook} ${delivery!.id} attempts it now`),
    });
    expect((await cli.run(['recover', webhook, '--since', 'yesterday'])).code).toBe(2);
    expect((await cli.run(['replay', 'failing', webhook, '--from', 'x'])).code).toBe(2);
    expect(await cli.json('off', webhook)).toMatchObject({ id: webhook, active: false });
    expect(await cli.run(['retry', webhook, delivery!.id])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is off: sluice on'),
    });
  });
});

describe('trigger', () => {
  it('sends a signed sample request to the endpoint of a source', async () => {
    await cli.output('deploy', 'http-request', '--name', 'triggered');
    expect(await cli.output('trigger', 'triggered', '--fixture', 'github.push')).toMatch(/^20\d/);
    await eventually(async () =>
      expect((await cli.json('events', 'triggered'))[0].event).toMatchObject({
        headers: { 'x-github-event': 'push' },
        body: { ref: 'refs/heads/main' },
      }),
    );
    expect((await cli.run(['trigger', 'triggered', '--fixture', 'none'])).stderr).toContain(
      'there is no fixture none; fixtures are github.ping',
    );
    await cli.output('deploy', 'github', '--name', 'signed', '-p', 'secret=s3cret');
    expect(await cli.run(['trigger', 'signed', '--fixture', 'github.push'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('returned 401: the request was not signed; set SLUICE_FIXTURE_SECRET'),
    });
  });
});

describe('dev', () => {
  it('deploys again when the file or its neighbour changes, and shows events and errors with the lines of the author', async () => {
    write(
      'dev/part.mjs',
      "export const say = (context, text) => {\n  if (text === 'bad') throw new RangeError('too far');\n  context.$emit(text);\n};\n",
    );
    const file = (text: string) =>
      `import { say } from './part.mjs';\n// a comment\nexport default {\n  name: 'Dev',\n  run() {\n    say(this, '${text}');\n  },\n};\n`;
    write('dev/main.mjs', file('first'));
    const dev = cli.start(['dev', 'dev/main.mjs', '--name', 'dev']);
    await eventually(() => expect(dev.err()).toContain('watching 2 file(s)'));
    await cli.output('run', 'dev', '--no-wait');
    await eventually(() => expect(dev.out()).toContain('"first"'));
    write('dev/main.mjs', file('bad'));
    await eventually(() => expect(dev.err()).toContain('updated'));
    await cli.output('run', 'dev', '--no-wait');
    await eventually(() =>
      expect(dev.out()).toMatch(/RangeError: too far\n\s+at say \(dev\/part\.mjs:2:\d+\)\n\s+at .*dev\/main\.mjs:6:\d+/),
    );
    write('dev/main.mjs', "import { say } from './part.mjs';\nexport default {");
    await eventually(() => expect(dev.err()).toContain('main.mjs:2:'));
    write('dev/main.mjs', file('again'));
    await eventually(() => expect(dev.err().split('updated').length).toBe(3));
    write('dev/main.mjs', 'export default {');
    await eventually(() => expect(dev.err()).toContain('does not parse'));
    write('dev/main.mjs', file('again'));
    await eventually(() => expect(dev.err()).toMatch(/\dZ {2}dev\/main\.mjs: right again, as it is deployed/));
    dev.child.kill('SIGINT');
    expect(await dev.ended).toMatchObject({
      code: 130,
      stderr: expect.stringContaining('dev stays deployed: sluice off dev, sluice delete dev'),
    });
  });

  it('waits for the next change if the first state is wrong, and notices an imported file that is created later', async () => {
    write('later/main.mjs', 'export default {');
    const dev = cli.start(['dev', 'later/main.mjs', '--name', 'later']);
    await eventually(() => expect(dev.err()).toContain('does not parse'));
    write('later/main.mjs', "import { name } from './parts/name.mjs';\nexport default { name, run() {} };\n");
    await eventually(() => expect(dev.err()).toContain('Could not resolve "./parts/name.mjs"'));
    write('later/parts/name.mjs', "export const name = 'Later';\n");
    await eventually(() => expect(dev.err()).toContain('watching 2 file(s)'));
    dev.child.kill();
  });

  it('follows the file when its folder, which is the working directory, is replaced or deleted for a while', async () => {
    const code = (name: string): string => `export default { name: '${name}', run() {} };\n`;
    write('replaced/main.mjs', code('One'));
    const dev = cli.start(['dev', 'main.mjs', '--name', 'replaced'], { folder: 'replaced' });
    await eventually(() => expect(dev.err()).toContain('watching 1 file(s)'));
    renameSync(join(cli.folder, 'replaced'), join(cli.folder, 'former'));
    write('replaced/main.mjs', code('Two'));
    await eventually(() => expect(dev.err()).toContain('updated'));
    rmSync(join(cli.folder, 'replaced'), { recursive: true });
    await eventually(() => expect(dev.err()).toContain('there is no file main.mjs'));
    write('replaced/main.mjs', code('Three'));
    await eventually(() => expect(dev.err().split('updated').length).toBe(3));
    dev.child.kill();
  });

  it('ends if no change of the file can help', async () => {
    write('fine.mjs', "export default { name: 'Fine', run() {} };\n");
    expect((await cli.run(['dev', 'fine.mjs', '-p', 'nonsense'])).code).toBe(2);
  });

  it('shows what the hooks do while the source is deployed, and keeps to the source although it is renamed', async () => {
    const code = (name: string) =>
      `export default { name: '${name}', hooks: { async deploy() { this.$emit('deployed'); }, async activate() { throw new Error('no app'); } }, run() {} };\n`;
    write('hooks.mjs', code('One'));
    const dev = cli.start(['dev', 'hooks.mjs']);
    await eventually(() => expect(dev.out()).toMatch(/"deployed"/));
    await eventually(() => expect(dev.out()).toMatch(/Error: no app/));
    const { id } = await source('hooks');
    await cli.output('update', 'hooks', '--name', 'renamed');
    write('hooks.mjs', code('Two'));
    await eventually(() => expect(dev.err()).toContain('updated'));
    expect((await source('renamed')).id).toBe(id);
    expect((await cli.run(['get', 'source', 'hooks'])).code).toBe(4);
    dev.child.kill();
  });

  describe('through a connection that breaks', () => {
    let proxy: Server;
    let env: Record<string, string>;
    let isDown: boolean;
    /** The connection breaks after a response to this method. */
    let lastMethod: string | undefined;

    beforeEach(async () => {
      [isDown, lastMethod] = [false, undefined];
      proxy = createServer((incoming, response) => {
        if (isDown) return void response.writeHead(503).end();
        const { method, url, headers } = incoming;
        const forwarded = request(new URL(url!, api.baseUrl), { method, headers }, (answer) => {
          if (method === lastMethod) isDown = true;
          response.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(response);
        });
        forwarded.on('error', () => response.destroy());
        // a live stream would stay open
        response.on('close', () => forwarded.destroy());
        incoming.pipe(forwarded);
      });
      await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
      env = { SLUICE_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
    });
    afterEach(() => {
      proxy.closeAllConnections();
      proxy.close();
    });

    it('deploys a change that was saved while Sluice could not be reached, and reports that the source is off', async () => {
      write('away.mjs', "export default { name: 'Away', run() {} };\n");
      const dev = cli.start(['dev', 'away.mjs'], { env });
      await eventually(() => expect(dev.err()).toContain('watching 1 file(s)'));
      isDown = true;
      await cli.output('off', 'away');
      write('away.mjs', "export default { name: 'Saved meanwhile', run() {} };\n");
      await eventually(() => expect(dev.err()).toContain('returned 503, but not a response of Sluice'));
      isDown = false;
      await eventually(() => expect(dev.err()).toMatch(/updated[^]*away is off: sluice on away/));
      dev.child.kill();
    });

    it('shows the warnings about a version if Sluice could not be reached just after its deployment', async () => {
      const code = (hook: string): string => `export default { name: 'Cut', hooks: { ${hook}() {} }, run() {} };\n`;
      lastMethod = 'POST';
      write('cut.mjs', code('actvate'));
      const dev = cli.start(['dev', 'cut.mjs'], { env });
      await eventually(() => expect(dev.err()).toContain('returned 503, but not a response of Sluice'));
      [isDown, lastMethod] = [false, 'PATCH'];
      await eventually(() => expect(dev.err()).toMatch(/warning: .*actvate/));

      write('cut.mjs', code('deactvate'));
      await eventually(() => expect(dev.err()).toMatch(/updated[^]*returned 503, but not a response of Sluice/));
      // the same version again
      write('cut.mjs', code('deactvate'));
      [isDown, lastMethod] = [false, undefined];
      await eventually(() => expect(dev.err()).toMatch(/warning: .*deactvate/));
      dev.child.kill();
      // its warning would also appear when other tests apply an export
      await cli.output('delete', 'source', 'cut');
    });
  });
});

describe('apply', () => {
  const manifests = (more = '') => `
apiVersion: sluice.dev/v1
kind: Webhook
metadata: {name: inbox}
spec: {url: ${receiver.url}applied, description: all orders}
---
apiVersion: sluice.dev/v1
kind: Source
metadata: {name: applied}
spec:
  component: {file: ../echo.mjs}
  props:
    text: hello
    token: {valueFrom: {env: APPLIED_TOKEN}}
---
apiVersion: sluice.dev/v1
kind: Source
metadata: {name: ticks}
spec:
  component: {key: interval-timer}
  active: false
  props: {timer: {intervalSeconds: 3600}}
---
apiVersion: sluice.dev/v1
kind: Subscription
spec: {emitter: source/applied, listener: webhook/inbox}
${more}`;
  const extra = `
---
apiVersion: sluice.dev/v1
kind: Source
metadata: {name: extra}
spec: {component: {key: manual}}
---
apiVersion: sluice.dev/v1
kind: Subscription
spec: {emitter: source/extra, listener: webhook/inbox, event_name: '*'}
`;
  const env = { APPLIED_TOKEN: 'a secret' };
  const times = async () => {
    const [sources, webhooks] = await Promise.all([api.get('/users/me/sources?limit=100'), api.get('/users/me/webhooks?limit=100')]);
    return [...sources.body.data, ...webhooks.body.data].map(({ id, updated_at }: any) => `${id} ${updated_at}`).sort();
  };

  it('creates what is missing; a second time it changes nothing, and prune deletes only what it has created', async () => {
    write('apply/all.yaml', manifests(extra));
    await cli.output('deploy', 'manual', '--name', 'by-hand');
    const other = await api.webhook(`${receiver.url}other`);
    await api.subscribe((await source('by-hand')).id, other);
    const dry = await cli.run(['apply', '-f', 'apply', '--dry-run'], { env });
    expect(dry.stdout).toMatch(/^create {5}webhook inbox\ncreate {5}source applied\n/);
    expect(await source('applied')).toBeUndefined();
    const first = await cli.run(['apply', '-f', 'apply'], { env });
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout.match(/created/g)).toHaveLength(6);
    expect(await source('ticks')).toMatchObject({ active: false, external_id: 'sluice.dev/ticks' });

    // updated_at has seconds
    const before = await times();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const second = await cli.run(['apply', '-f', 'apply'], { env });
    expect(second.stdout.match(/unchanged/g)).toHaveLength(6);
    expect(await times()).toEqual(before);
    expect((await cli.run(['diff', '-f', 'apply'], { env })).code).toBe(0);

    write('apply/all.yaml', manifests().replace('text: hello', 'text: bye'));
    const { code, stdout } = await cli.run(['diff', '-f', 'apply', '--prune'], { env });
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /update {5}source applied: props.text\n[^]*delete {5}subscription source\/extra → webhook\/inbox \(\*\)\ndelete {5}source extra\n$/,
    );
    expect((await cli.run(['apply', '-f', 'apply', '--prune'], { env })).code).toBe(0);
    expect(await source('extra')).toBeUndefined();
    expect((await source('applied')).configured_props.text).toBe('bye');
    expect(await source('by-hand')).toBeDefined();
    expect((await api.get('/users/me/subscriptions')).body.data).toContainEqual(expect.objectContaining({ listener_id: other }));
    // a secret that has changed is updated, though it cannot be compared here
    expect((await cli.run(['apply', '-f', 'apply'], { env: { APPLIED_TOKEN: 'another' } })).code).toBe(0);
  });

  it('removes the value of a prop that its manifest no longer names', async () => {
    write('apply/all.yaml', manifests().replace('    text: hello\n', '').replace('{timer: {intervalSeconds: 3600}}', '{}'));
    const { stdout } = await cli.run(['apply', '-f', 'apply'], { env });
    expect(stdout).toMatch(/^updated {4}source applied/m);
    expect(stdout).toMatch(/^updated {4}source ticks/m);
    expect((await source('applied')).configured_props).not.toHaveProperty('text');
    expect((await source('ticks')).configured_props.timer).toMatchObject({ interval_seconds: 60 });
    expect((await cli.run(['diff', '-f', 'apply'], { env })).code).toBe(0);
  });

  it('refuses bad manifests with the place of the mistake', async () => {
    const cases: [string, string][] = [
      ['apiVersion: v1', 'standard input, document 1: apiVersion must be sluice.dev/v1'],
      ['apiVersion: sluice.dev/v1\nkind: Sauce\nspec: {}', 'kind must be one of'],
      ['apiVersion: sluice.dev/v1\nkind: Source\nmetadata: {name: x}\nspec: {componnet: 1}', 'unknown field spec.componnet'],
      ['apiVersion: sluice.dev/v1\nkind: Subscription\nspec: {emitter: source/none, listener: webhook/none}', 'there is no source none'],
      ['a: [', 'standard input:'],
    ];
    for (const [input, message] of cases)
      expect(await cli.run(['apply', '-f', '-'], { input })).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });

  it('subscribes sources and webhooks of the account that no file describes', async () => {
    await cli.output('deploy', 'manual', '--name', 'deployed-before');
    const webhook = (await api.post(`/webhooks?name=created-before&url=${receiver.url}before`)).body.data.id;
    const input = `apiVersion: sluice.dev/v1
kind: Subscription
spec: {emitter: source/deployed-before, listener: webhook/created-before}`;
    for (const result of ['created', 'unchanged'])
      expect((await cli.run(['apply', '-f', '-'], { input })).stdout).toMatch(new RegExp(`^${result} `));
    const emitter_id = (await source('deployed-before')).id;
    expect((await api.get('/users/me/subscriptions')).body.data).toContainEqual(
      expect.objectContaining({ emitter_id, listener_id: webhook }),
    );
  });

  needing('accounts', 'receiver').it('export and apply give another account the same deliveries and credentials', async () => {
    const other = await system.account();
    const connect = async (to: Api, key: string) => (await to.post('/connections', { app: 'chat', credentials: { key } })).body.data.id;
    const everything = await api.webhook(`${receiver.url}everything`);
    await api.subscribe(api.account.id, everything);
    write(
      'chatter.mjs',
      "export default { name: 'Chatter', props: { chat: { type: 'app', app: 'chat' } }, run() { this.$emit(this.chat.$auth); } };",
    );
    await cli.output('deploy', 'chatter.mjs', '--name', 'inline', '-p', 'chat={"$auth":{"key":"inline"}}');
    await cli.output('deploy', 'chatter.mjs', '--name', 'connected', '-p', `chat={"authProvisionId":"${await connect(api, 'named')}"}`);
    write(
      'keeper.mjs',
      "export default { name: 'Keeper', props: { keys: { type: 'string[]', secret: true }, any: 'any' }, run() { this.$emit({ keys: this.keys, any: this.any }); } };",
    );
    await cli.output(
      'deploy',
      'keeper.mjs',
      '--name',
      'kept',
      '-p',
      'keys=["a secret"]',
      '-p',
      'any={"valueFrom":{"env":"SLUICE_API_KEY"}}',
    );
    await api.subscribe(
      (await source('by-hand')).id,
      (await api.get('/users/me/webhooks?limit=100')).body.data.find(({ name }: any) => name === 'inbox').id,
    );
    const exported = await cli.output('export');
    await cli.output('export', 'dump');
    expect(statSync(join(cli.folder, 'dump', 'components', 'applied.mjs')).isFile()).toBe(true);
    expect(exported).not.toContain('a secret');
    const secrets = Object.fromEntries([...exported.matchAll(/env: (SLUICE_SECRET_\w+)/g)].map(([, name]) => [name!, 'imported']));
    const connection = await connect(other, 'named there');
    secrets.SLUICE_SECRET_KEPT_KEYS = '["imported"]';
    const there = { ...secrets, SLUICE_CONNECTION_CHAT: connection, SLUICE_API_KEY: other.account.api_key };
    const imported = await cli.run(['apply', '-f', '-'], { input: exported, env: there });
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    expect((await cli.run(['apply', '-f', 'dump'], { env: there })).stdout).not.toMatch(/^(created|updated|deleted) /m);
    receiver.received.length = 0;
    for (const env of [{}, there]) {
      expect((await cli.run(['run', 'applied', '-d', '{"n":1}'], { env })).code).toBe(0);
      expect((await cli.run(['publish', 'by-hand', '-d', '"by hand"'], { env })).code).toBe(0);
    }
    const deliveries = () =>
      receiver.received
        .filter(({ path }) => path !== '/everything')
        .map(({ path, text }) => `${path} ${text}`)
        .sort();
    const once = ['/applied "by hand"', '/applied {"text":"none","event":{"n":1}}', '/other "by hand"'];
    await eventually(() => expect(deliveries()).toEqual(once.flatMap((line) => [line, line]).sort()));
    expect((await other.get('/users/me/subscriptions')).body.data).toContainEqual(
      expect.objectContaining({ emitter_id: other.account.id }),
    );
    for (const [name, event] of [
      ['inline', { key: 'imported' }],
      ['connected', { key: 'named there' }],
      ['kept', { keys: ['imported'], any: { valueFrom: { env: 'SLUICE_API_KEY' } } }],
    ] as const) {
      expect((await cli.run(['run', name], { env: there })).code).toBe(0);
      const shown = async () => JSON.parse((await cli.run(['events', name, '-o', 'json'], { env: there })).stdout);
      await eventually(async () => expect(await shown()).toMatchObject([{ event }]));
    }
  });

  it('prune keeps the subscription that an auto-subscription of the files has created', async () => {
    const auto = `
apiVersion: sluice.dev/v1
kind: Webhook
metadata: {name: all-later}
spec: {url: ${receiver.url}all-later}
---
apiVersion: sluice.dev/v1
kind: Subscription
spec: {auto: true, listener: webhook/all-later}
`;
    const later = `---
apiVersion: sluice.dev/v1
kind: Source
metadata: {name: added-later}
spec: {component: {key: manual}}
`;
    const apply = async (input: string) =>
      expect((await cli.run(['apply', '-f', '-', '--set', 'auto', '--prune'], { input })).code).toBe(0);
    for (const input of [auto, auto + later]) await apply(input);
    const subscribed = async () => {
      const { id } = await source('added-later');
      return (await api.get('/users/me/subscriptions')).body.data.filter(({ emitter_id }: any) => emitter_id === id);
    };
    await eventually(async () => expect(await subscribed()).toHaveLength(1));
    await apply(auto + later);
    expect(await subscribed()).toHaveLength(1);
    for (const name of ['added-later', 'all-later']) await cli.output('delete', name, '--yes');
  });
});

describe('the key', () => {
  it('is stored by login for the user only, and appears in no argument, output or debug log', async () => {
    const key = api.account.api_key;
    const alone = { SLUICE_API_KEY: undefined, SLUICE_URL: undefined };
    const login = await cli.run(['login', api.baseUrl, '--profile', 'here', '--debug'], { input: `${key}\n`, env: alone });
    expect(login.code).toBe(0);
    expect(statSync(join(cli.folder, '.config', 'sluice', 'config.json')).mode & 0o777).toBe(0o600);
    const who = await cli.run(['whoami', '--debug', '-o', 'json'], { env: alone });
    expect(JSON.parse(who.stdout)).toMatchObject({ id: api.account.id, access: 'the profile here' });
    expect(await cli.output('whoami')).not.toContain('2147483647');
    expect(who.stderr).toMatch(/\[debug\] GET http\S+\/v1\/users\/me 200/);
    expect(await cli.run(['profile'], { env: alone })).toMatchObject({ stdout: expect.stringMatching(/\* +here/) });
    const doctor = await cli.run(['doctor'], { env: alone });
    expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining('server: Sluice v1') });
    for (const { stdout, stderr } of [login, who, doctor]) expect(stdout + stderr).not.toContain(key);
    // a profile's key is never sent elsewhere
    expect(await cli.run(['whoami'], { env: { ...alone, SLUICE_URL: 'http://127.0.0.1:9' } })).toMatchObject({ code: 3 });
    expect(await cli.run(['logout'], { env: alone })).toMatchObject({ code: 0 });
    expect(readFileSync(join(cli.folder, '.config', 'sluice', 'config.json'), 'utf8')).not.toContain(key);
    rmSync(join(cli.folder, '.config'), { recursive: true });
  });
});

describe('api, init and completion', () => {
  it('api calls any operation of the server', async () => {
    expect(await cli.output('api')).toContain('listSourceStreams');
    const made = JSON.parse(await cli.output('api', 'createSource', '--data', '{"key":"manual","name":"by-api"}'));
    expect(JSON.parse(await cli.output('api', 'getSource', `id=${made.data.id}`)).data.name_slug).toBe('by-api');
    expect(JSON.parse(await cli.output('api', 'listSources', 'limit=1')).data).toHaveLength(1);
    expect((await cli.run(['api', 'getSource'])).stderr).toBe('sluice: missing: id=…\n');
    expect(await cli.run(['api', 'getSource', 'id=1', 'idd=2'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no parameter idd'),
    });
    const event = ['api', 'publishSourceEvents', `id=${made.data.id}`];
    const binary = ['ce-specversion: 1.0', 'ce-id: b1', 'ce-type: order.created', 'ce-source:https://example.com/shop'];
    await cli.output(...event, ...binary.flatMap((header) => ['-H', header]), '-d', '{"order":1}');
    const structured = { specversion: '1.0', id: 's1', type: 'order.created', source: '/shop', data: { order: 2 } };
    await cli.output(...event, '-H', 'content-type: application/cloudevents+json', '-d', JSON.stringify(structured));
    await eventually(async () =>
      expect(await cli.json('events', 'by-api', '--stream', 'order.created')).toMatchObject([
        { event: { order: 1 }, metadata: { emit_id: 'b1' } },
        { event: { order: 2 }, metadata: { emit_id: 's1' } },
      ]),
    );
    expect((await cli.run(['api', 'deleteSource', `id=${made.data.id}`])).code).toBe(0);
  });

  it('init writes components that deploy', async () => {
    for (const template of ['timer', 'http']) {
      await cli.output('init', `new-${template}`, '-t', template);
      await cli.output(
        'deploy',
        `new-${template}.mjs`,
        ...(template === 'timer' ? ['-p', 'url=https://example.com/', '-p', 'timer={"intervalSeconds":86400}'] : []),
      );
    }
    expect((await cli.run(['init', 'new-http'])).code).toBe(2);
    expect(await cli.output('trigger', 'new-http', '-d', '{"a":1}')).toBe('202\n');
  });

  it('completion knows the commands', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) expect(await cli.output('completion', shell)).toContain('deploy');
  });
});

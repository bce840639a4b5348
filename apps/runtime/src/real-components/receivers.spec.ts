import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { componentOf, startTestSandbox } from '../sandbox/sandbox-for-tests.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { type Played, type PlayedRequest, PlayedSource } from './played-source-for-tests.js';

const secret = 'a secret of both';
const webhookSecret = `whsec_${Buffer.from(secret).toString('base64')}`;
const seconds = (ago = 0): string => String(Math.floor(Date.now() / 1000) - ago);
const hmac = (algorithm: string, key: string, text: string, encoding: 'hex' | 'base64'): string =>
  createHmac(algorithm, key).update(text).digest(encoding);

/** How a sender signs, as its documentation describes it. */
interface Sender {
  props: Record<string, unknown>;
  body: string;
  /** Beside the signature */
  headers: Record<string, string>;
  sign(body: string, timestamp: string): Record<string, string>;
  /** The emitted event's id and type */
  id: unknown;
  type: string;
  hasTimestamp: boolean;
}

const json = { 'content-type': 'application/json' };

const senders: Record<string, Sender> = {
  github: {
    props: { secret },
    body: '{"ref":"refs/heads/main","repository":{"full_name":"octo/hello"},"text":"ünïcode ✓"}',
    headers: { ...json, 'x-github-event': 'push', 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' },
    sign: (body) => ({ 'x-hub-signature-256': `sha256=${hmac('sha256', secret, body, 'hex')}` }),
    id: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    type: 'push',
    hasTimestamp: false,
  },
  stripe: {
    props: { secret: 'whsec_test' },
    body: '{\n  "id": "evt_1",\n  "object": "event",\n  "type": "invoice.paid"\n}',
    headers: json,
    sign: (body, t) => ({
      'stripe-signature': `t=${t},v1=${'0'.repeat(64)},v1=${hmac('sha256', 'whsec_test', `${t}.${body}`, 'hex')},v0=${'1'.repeat(64)}`,
    }),
    id: 'evt_1',
    type: 'invoice.paid',
    hasTimestamp: true,
  },
  shopify: {
    props: { secret },
    body: '{"id":820982911946154508,"email":"jon@example.com"}',
    headers: { ...json, 'x-shopify-topic': 'orders/create', 'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043' },
    sign: (body) => ({ 'x-shopify-hmac-sha256': hmac('sha256', secret, body, 'base64') }),
    id: 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
    type: 'orders/create',
    hasTimestamp: false,
  },
  slack: {
    props: { secret },
    body: '{"type":"event_callback","event_id":"Ev08MFMKH6","event":{"type":"app_mention","text":"hi"}}',
    headers: json,
    sign: (body, t) => ({ 'x-slack-request-timestamp': t, 'x-slack-signature': `v0=${hmac('sha256', secret, `v0:${t}:${body}`, 'hex')}` }),
    id: 'Ev08MFMKH6',
    type: 'app_mention',
    hasTimestamp: true,
  },
  'standard-webhooks': {
    props: { secret: webhookSecret },
    body: '{"type":"user.created","data":{"id":7}}',
    headers: { ...json, 'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek' },
    sign: (body, t) => ({
      'webhook-timestamp': t,
      'webhook-signature': `v1,AAAA v1,${hmac('sha256', secret, `msg_p5jXN8AQM9LWM0D4loKWxJek.${t}.${body}`, 'base64')}`,
    }),
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    type: 'user.created',
    hasTimestamp: true,
  },
  twilio: {
    props: { authToken: secret },
    body: 'Body=Hello+there&From=%2B14158675310&MessageSid=SM1&MessageStatus=delivered',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'i-twilio-idempotency-token': 'token-1' },
    sign: (body) => {
      const fields = [...new URLSearchParams(body)].sort(([a], [b]) => (a < b ? -1 : 1));
      const text = `https://endpoint.test/abcdefgh${fields.map(([name, value]) => name + value).join('')}`;
      return { 'x-twilio-signature': hmac('sha1', secret, text, 'base64') };
    },
    id: 'token-1',
    type: 'delivered',
    hasTimestamp: false,
  },
  hmac: {
    props: {
      secret,
      header: 'X-Signature',
      prefix: 'sha512=',
      algorithm: 'sha512',
      encoding: 'base64',
      signed: '{id}:{timestamp}:{body}',
      timestampHeader: 'X-Time',
      idHeader: 'X-Id',
      typeHeader: 'X-Type',
    },
    body: '{"a":[1,2]}',
    headers: { ...json, 'x-id': 'id-1', 'x-type': 'thing.made' },
    sign: (body, t) => ({ 'x-time': t, 'x-signature': `sha512=${hmac('sha512', secret, `id-1:${t}:${body}`, 'base64')}` }),
    id: 'id-1',
    type: 'thing.made',
    hasTimestamp: true,
  },
  gitlab: {
    props: { secret },
    body: '{"object_kind":"merge_request","object_attributes":{"iid":1}}',
    headers: { ...json, 'x-gitlab-event': 'Merge Request Hook', 'idempotency-key': 'f5e5f430-f57b-4e6e-9fac-d9128cd7232f' },
    sign: () => ({ 'x-gitlab-token': secret }),
    id: 'f5e5f430-f57b-4e6e-9fac-d9128cd7232f',
    type: 'merge_request',
    hasTimestamp: false,
  },
};

describe('the receivers of the registry', () => {
  let sandbox: Sandbox;
  beforeAll(async () => (sandbox = await startTestSandbox()), 120_000);
  afterAll(() => sandbox.close());

  const sourceOf = async (key: string, props: Record<string, unknown>): Promise<PlayedSource> => {
    const code = readFileSync(join(process.cwd(), 'components', `${key}.mjs`), 'utf8');
    const description = await sandbox.inspect(componentOf(code));
    expect(description).toMatchObject({ key, has_run: true });
    expect(description.warnings).toBeUndefined();
    return new PlayedSource(sandbox, code, description, props);
  };
  const eventsOf = ({ emits }: Played): unknown[] => emits.map(({ event }) => JSON.parse(event) as unknown);

  describe.each(Object.entries(senders))('%s', (key, { props, body, headers, sign, id, type, hasTimestamp }) => {
    const request = (changes: Partial<PlayedRequest> = {}, signed = sign(body, seconds())): PlayedRequest => ({
      body,
      headers: { ...headers, ...signed },
      ...changes,
    });

    it('emits what its sender has signed, once', async () => {
      const source = await sourceOf(key, props);
      const played = await source.request(request());
      expect(played.reply?.status).toBe(200);
      const payload: unknown =
        headers['content-type'] === 'application/json' ? JSON.parse(body) : expect.objectContaining({ From: '+14158675310' });
      expect(eventsOf(played)).toEqual([{ id, type, payload }]);
      expect(played.emits[0]).toMatchObject({ id, summary: type });
      expect(await source.request(request())).toMatchObject({ emits: [], reply: { status: 200 } });
    });

    it('emits on a stream per type if it is configured so', async () => {
      const played = await (await sourceOf(key, { ...props, streams: true })).request(request());
      expect(played.emits[0]?.name).toBe(type);
    });

    it('refuses an altered body, another secret and a missing signature with 401', async () => {
      const source = await sourceOf(key, props);
      const refused = { emits: [], reply: { status: 401 } };
      if (key !== 'gitlab') expect(await source.request(request({ body: body.replace(/[a-z](?=[^a-z]*$)/, 'Z') }))).toMatchObject(refused);
      expect(await source.request(request({ headers }))).toMatchObject(refused);
      const name = Object.keys(sign(body, seconds())).at(-1)!;
      for (const value of ['', 'nonsense', 'v1,', 'sha256=', `t=${seconds()},v1=`, 'ü'])
        expect(await source.request(request({ headers: { ...headers, ...sign(body, seconds()), [name]: value } }))).toMatchObject(refused);
      const other = await sourceOf(key, { ...props, ...('authToken' in props ? { authToken: 'other' } : { secret: 'other' }) });
      expect(await other.request(request())).toMatchObject(refused);
    });

    it.each(['', ' ', '\u00a0\n'])('refuses every request with 401 if the secret is blank: %j', async (blank) => {
      const source = await sourceOf(key, { ...props, ...('authToken' in props ? { authToken: blank } : { secret: blank }) });
      const refused = { emits: [], reply: { status: 401, body: '{"error":"no secret is configured"}' } };
      expect(await source.request(request())).toMatchObject(refused);
      expect(await source.request(request({}, { ...sign(body, seconds()), 'x-gitlab-token': blank }))).toMatchObject(refused);
    });

    if (!hasTimestamp) return;

    it('refuses a request that is older or newer than five minutes with 401', async () => {
      const source = await sourceOf(key, props);
      for (const ago of [301, -301]) {
        const played = await source.request(request({}, sign(body, seconds(ago + Math.sign(ago)))));
        expect(played).toMatchObject({ emits: [], reply: { status: 401, body: expect.stringContaining('the timestamp is too old') } });
      }
      expect((await source.request(request({}, sign(body, seconds(290))))).reply?.status).toBe(200);
      const altered = { ...sign(body, seconds(400)), ...timestampOnly(sign(body, seconds())) };
      expect(await source.request(request({}, altered))).toMatchObject({ emits: [], reply: { status: 401 } });
    });
  });

  it('answers GitHub’s ping without an event', async () => {
    const { props, body, sign } = senders.github!;
    const played = await (
      await sourceOf('github', props)
    ).request({ body, headers: { ...json, ...sign(body, ''), 'x-github-event': 'ping' } });
    expect(played).toEqual({ emits: [], reply: { status: 200, body: '{"pong":true}' } });
  });

  it('accepts the example of GitHub’s documentation on validating deliveries', async () => {
    const source = await sourceOf('github', { secret: "It's a Secret to Everybody" });
    const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    const send = (body: string) => source.request({ body, headers: { 'content-type': 'text/plain', 'x-hub-signature-256': signature } });
    expect((await send('Hello, World!')).reply?.status).toBe(200);
    expect((await send('Hello, World?')).reply?.status).toBe(401);
  });

  it.each(['whsec_', 'whsec_\n', 'whsec_A', '••••••••', 'a secret!', '-'])(
    'refuses every request with 401 if the secret of Standard Webhooks is not a key in base64: %j',
    async (other) => {
      const { body, headers } = senders['standard-webhooks']!;
      const timestamp = seconds();
      const signature = hmac('sha256', '', `${headers['webhook-id']}.${timestamp}.${body}`, 'base64');
      const forged = { ...headers, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
      expect(await (await sourceOf('standard-webhooks', { secret: other })).request({ body, headers: forged })).toMatchObject({
        emits: [],
        reply: { status: 401, body: '{"error":"the configured secret is not base64"}' },
      });
    },
  );

  it('emits the same payload if the webhook in GitHub is set to send a form', async () => {
    const source = await sourceOf('github', { secret });
    const body = new URLSearchParams({ payload: '{"ref":"refs/heads/main"}' }).toString();
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-hub-signature-256': `sha256=${signature}` };
    expect(eventsOf(await source.request({ body, headers }))).toMatchObject([{ payload: { ref: 'refs/heads/main' } }]);
  });

  it('emits what an HTTP request has: the request, or its body alone, which is null if there is none', async () => {
    const [whole, bodyOnly] = [await sourceOf('http-request', {}), await sourceOf('http-request', { bodyOnly: true })];
    const head = { method: 'GET', path: '/', query: {}, headers: {} };
    expect(eventsOf(await whole.request({ method: 'GET' }))).toEqual([{ ...head, bodyRaw: '', body: '' }]);
    expect(eventsOf(await bodyOnly.request({ method: 'GET' }))).toEqual([null]);
    expect(eventsOf(await bodyOnly.request({ body: { a: 1 } }))).toEqual([{ a: 1 }]);
  });

  it('verifies the signature of a body that is not UTF-8', async () => {
    const body = Buffer.from([0xff, 0xfe, 0x00, 0x41]);
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const source = await sourceOf('github', { secret });
    const bytes = { body, headers: { 'content-type': 'application/octet-stream', 'x-hub-signature-256': `sha256=${signature}` } };
    expect((await source.request(bytes)).reply?.status).toBe(200);
  });

  it('answers Slack’s challenge only if it is signed', async () => {
    const { props, sign } = senders.slack!;
    const body = '{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}';
    const source = await sourceOf('slack', props);
    expect(await source.request({ body, headers: { ...json, ...sign(body, seconds()) } })).toEqual({
      emits: [],
      reply: { status: 200, body: '3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P' },
    });
    expect((await source.request({ body, headers: json })).reply?.status).toBe(401);
  });

  it.each([
    ['a command', 'command=%2Fdeploy&text=now&trigger_id=13345224609.738474920', { id: '13345224609.738474920', type: '/deploy' }],
    [
      'an interaction',
      `payload=${encodeURIComponent('{"type":"block_actions","trigger_id":"12466734323.1395872398"}')}`,
      { id: '12466734323.1395872398', type: 'block_actions' },
    ],
  ])('receives from Slack %s', async (_, body, event) => {
    const { props, sign } = senders.slack!;
    const headers = { 'content-type': 'application/x-www-form-urlencoded', ...sign(body, seconds()) };
    expect(eventsOf(await (await sourceOf('slack', props)).request({ body, headers }))).toEqual([expect.objectContaining(event)]);
  });

  it('verifies a JSON body of Twilio by its checksum in the signed URL', async () => {
    const body = '{"EventType":"onMessageAdded"}';
    const search = `bodySHA256=${createHash('sha256').update(body).digest('hex')}`;
    const signature = hmac('sha1', secret, `https://endpoint.test/abcdefgh?${search}`, 'base64');
    const source = await sourceOf('twilio', { authToken: secret });
    const headers = { ...json, 'x-twilio-signature': signature };
    expect(eventsOf(await source.request({ body, search, headers }))).toEqual([expect.objectContaining({ type: 'onMessageAdded' })]);
    expect((await source.request({ body: body.replace('Added', 'Other'), search, headers })).reply?.status).toBe(401);
  });

  describe('of Twilio', () => {
    const endpoint = 'https://endpoint.test/abcdefgh';
    const form = 'Body=Hello+there&From=%2B14158675310&SmsStatus=received&To=';
    const fields = 'BodyHello thereFrom+14158675310SmsStatusreceivedTo';
    const signedBy = (text: string): Record<string, string> => ({ 'x-twilio-signature': hmac('sha1', secret, text, 'base64') });

    it('accepts the example of its documentation', async () => {
      const source = await sourceOf('twilio', { authToken: '12345', url: 'https://mycompany.com/myapp.php?foo=1&bar=2' });
      const body = new URLSearchParams({
        CallSid: 'CA1234567890ABCDE',
        Caller: '+12349013030',
        Digits: '1234',
        From: '+12349013030',
        To: '+18005551212',
      });
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': '0/KCTR6DLpKmkAf8muzZqo1nDgQ=' };
      expect((await source.request({ body: body.toString(), headers })).reply?.status).toBe(200);
    });

    it.each<[string, string, string, string?]>([
      ['a query', '?foo=1&bar=2', 'foo=1&bar=2'],
      ['spaces as plus signs', '?foo=a+b', 'foo=a+b'],
      ['spaces in percent encoding', '?foo=a%20b', 'foo=a%20b'],
      ['characters that need no encoding', '?next=/a/b&t=x:y,z', 'next=/a/b&t=x:y,z'],
      ['lower-case percent encoding', '?a=%c3%a9', 'a=%c3%a9'],
      ['a name without a value', '?flag', 'flag'],
      ['a repeated name', '?a=1&b=2&a=3', 'a=1&b=2&a=3'],
      ['a query that it has encoded again', '?next=%2Fa', 'next=/a'],
      ['a trailing slash', '/', ''],
      ['a path', '/a%20b', '', '/a%20b'],
    ])('verifies the URL as it was requested, with %s', async (_, signed, search, path = '/') => {
      const source = await sourceOf('twilio', { authToken: secret });
      const headers = { 'content-type': 'application/x-www-form-urlencoded', ...signedBy(endpoint + signed + fields) };
      expect(eventsOf(await source.request({ path, search, headers, body: form }))).toEqual([
        expect.objectContaining({ type: 'received' }),
      ]);
      expect((await source.request({ path: `${path}x`, search, headers, body: form })).reply?.status).toBe(401);
      expect((await source.request({ path, search: `${search}x`, headers, body: form })).reply?.status).toBe(401);
    });

    it('emits the query of a GET request, but only if it was signed', async () => {
      const search = 'Body=Hello+World&From=%2B1415&SmsStatus=received';
      const headers = signedBy(`${endpoint}?${search}`);
      for (const url of [undefined, endpoint, `${endpoint}?${search}`]) {
        const source = await sourceOf('twilio', { authToken: secret, url });
        expect(eventsOf(await source.request({ method: 'GET', search, headers }))).toMatchObject([
          { type: 'received', payload: { Body: 'Hello World', From: '+1415' } },
        ]);
        expect((await source.request({ method: 'GET', search: `${search}9`, headers })).reply?.status).toBe(401);
      }
    });

    it.each([
      ['https://proxy.test/sms', 'https://proxy.test/sms', 200],
      ['https://proxy.test/sms', 'https://proxy.test:443/sms', 200],
      ['http://proxy.test/sms', 'http://proxy.test:80/sms', 200],
      ['https://proxy.test:8443/sms', 'https://proxy.test:8443/sms', 200],
      ['https://proxy.test:8443/sms', 'https://proxy.test/sms', 200],
      ['https://user:word@proxy.test/sms', 'https://user:word@proxy.test:443/sms', 200],
      ['https://[::1]/sms', 'https://[::1]:443/sms', 200],
      ['https://proxy.test/sms#rc=2', 'https://proxy.test/sms', 200],
      ['https://proxy.test/sms', 'https://proxy.test:8443/sms', 401],
      ['https://proxy.test/sms', 'https://other.test/sms', 401],
    ])('with the URL %s, responds to a signature of %s with %i', async (url, signed, status) => {
      const source = await sourceOf('twilio', { authToken: secret, url });
      const headers = { 'content-type': 'application/x-www-form-urlencoded', ...signedBy(signed + fields) };
      expect((await source.request({ body: form, headers })).reply?.status).toBe(status);
    });

    it.each(['https://proxy.test/sms', 'https://proxy.test/sms?next=/a'])('verifies a JSON body with the URL %s', async (url) => {
      const source = await sourceOf('twilio', { authToken: secret, url });
      const body = '{"EventType":"onMessageAdded"}';
      const sum = `bodySHA256=${createHash('sha256').update(body).digest('hex')}`;
      const headers = { ...json, ...signedBy(`${url}${url.includes('?') ? '&' : '?'}${sum}`) };
      expect((await source.request({ body, search: sum, headers })).reply?.status).toBe(200);
      expect((await source.request({ body: '{}', search: sum, headers })).reply?.status).toBe(401);
      // The checksum of another body must be signed, too
      const forged = { body: '{}', search: `bodySHA256=${createHash('sha256').update('{}').digest('hex')}` };
      for (const signed of [headers, { ...json, ...signedBy(url) }])
        expect((await source.request({ ...forged, headers: signed })).reply?.status).toBe(401);
    });
  });

  describe('of CloudEvents', () => {
    const event = {
      specversion: '1.0',
      id: 'A234-1234',
      source: '/mycontext',
      type: 'com.example.someevent',
      time: '2018-04-05T17:31:00Z',
      data: { a: 1 },
    };
    const headers = { 'ce-specversion': '1.0', 'ce-id': 'A234-1234', 'ce-source': '/mycontext', 'ce-type': 'com.example.someevent' };

    it.each<[string, PlayedRequest, unknown[]]>([
      [
        'binary',
        { headers: { ...json, ...headers, 'ce-subject': 'Euro%20%E2%82%AC' }, body: '{"a":1}' },
        [{ ...event, time: undefined, subject: 'Euro €', datacontenttype: 'application/json' }],
      ],
      [
        'binary (with a type of JSON by its suffix, and an attribute that is not encoded)',
        { headers: { 'content-type': 'application/geo+x+json', ...headers, 'ce-subject': '100% of %C3%A4' }, body: '[1]' },
        [{ ...event, time: undefined, subject: '100% of ä', datacontenttype: 'application/geo+x+json', data: [1] }],
      ],
      ['structured', { headers: { 'content-type': 'application/cloudevents+json; charset=UTF-8' }, body: JSON.stringify(event) }, [event]],
      [
        'batch',
        { headers: { 'content-type': 'application/cloudevents-batch+json' }, body: JSON.stringify([event, { ...event, id: '2' }]) },
        [event, { ...event, id: '2' }],
      ],
      ['empty batch', { headers: { 'content-type': 'application/cloudevents-batch+json' }, body: '[]' }, []],
    ])('receives them in %s mode', async (_, request, expected) => {
      const played = await (await sourceOf('cloudevents', {})).request(request);
      expect(played.reply).toEqual({ status: 202, body: '' });
      expect(eventsOf(played)).toEqual(JSON.parse(JSON.stringify(expected)));
    });

    it('drops an event that was received before, by its source and id', async () => {
      const source = await sourceOf('cloudevents', { streams: true });
      const send = (changes: object) =>
        source.request({ headers: { 'content-type': 'application/cloudevents+json' }, body: JSON.stringify({ ...event, ...changes }) });
      expect((await send({})).emits).toMatchObject([
        { id: '/mycontext A234-1234', name: 'com.example.someevent', ts: Date.parse(event.time) },
      ]);
      expect((await send({ data: 2 })).emits).toEqual([]);
      expect((await send({ source: '/other' })).emits).toHaveLength(1);
    });

    it.each(['$errors', '*', 'x'.repeat(129)])('emits an event whose type cannot be a stream on the default one: %s', async (type) => {
      const source = await sourceOf('cloudevents', { streams: true });
      const body = JSON.stringify({ ...event, type });
      const played = await source.request({ headers: { 'content-type': 'application/cloudevents+json' }, body });
      expect(played.reply?.status).toBe(202);
      expect(played.emits).toMatchObject([{ summary: type }]);
      expect(played.emits[0]).not.toHaveProperty('name');
    });

    it.each<[string, PlayedRequest, string]>([
      ['an attribute is missing', { headers: { ...json, ...headers, 'ce-id': '' }, body: '{}' }, 'the attribute id is missing'],
      ['it is another version', { headers: { ...json, ...headers, 'ce-specversion': '0.3' }, body: '{}' }, 'the version 0.3'],
      ['it is not a CloudEvent', { headers: json, body: '{}' }, 'not a CloudEvent'],
      ['it is in another format', { headers: { 'content-type': 'application/cloudevents+avro' }, body: 'x' }, 'not supported'],
      ['the body does not parse', { headers: { 'content-type': 'application/cloudevents+json' }, body: '{' }, 'not JSON'],
      ['the data does not parse', { headers: { ...json, ...headers }, body: '{' }, 'not JSON'],
      [
        'one of a batch has a long id',
        {
          headers: { 'content-type': 'application/cloudevents-batch+json' },
          body: JSON.stringify([event, { ...event, id: 'x'.repeat(4096) }]),
        },
        'at most 4096 characters',
      ],
      [
        'one of a batch is malformed',
        { headers: { 'content-type': 'application/cloudevents-batch+json' }, body: JSON.stringify([event, {}]) },
        'is missing',
      ],
    ])('refuses a request with 400 and emits nothing if %s', async (_, request, message) => {
      expect(await (await sourceOf('cloudevents', {})).request(request)).toMatchObject({
        emits: [],
        reply: { status: 400, body: expect.stringContaining(message) },
      });
    });

    it.each([
      ['100%25', '100%'],
      ['100%', '100%'],
      ['%zz', '%zz'],
      ['%2Fa%20b', '/a b'],
      ['"a b"', 'a b'],
      ['"a \\"b\\" \\\\c %20"', 'a "b" \\c  '],
      ['"', '"'],
      [Buffer.from('Käse €').toString('latin1'), 'Käse €'],
    ])('decodes the header value %s', async (value, subject) => {
      const source = await sourceOf('cloudevents', {});
      expect(eventsOf(await source.request({ headers: { ...json, ...headers, 'ce-subject': value }, body: '{}' }))).toMatchObject([
        { subject },
      ]);
    });

    it.each(['%c3', '%ff', '\xe4'])('refuses the header value %j, which is not percent-encoded UTF-8, with 400', async (value) => {
      const request = { headers: { ...json, ...headers, 'ce-subject': value }, body: '{}' };
      expect(await (await sourceOf('cloudevents', {})).request(request)).toMatchObject({
        emits: [],
        reply: { status: 400, body: '{"error":"the header ce-subject is not percent-encoded UTF-8"}' },
      });
    });

    it.each([
      ['application/x-www-form-urlencoded', 'a=1&b=2', 'a=1&b=2'],
      ['text/plain', '{"a":1}', '{"a":1}'],
      ['application/json', '"text"', 'text'],
      ['application/vnd.a+json', '[1]', [1]],
    ])('keeps data of the type %s as it is, and parses only JSON', async (type, body, data) => {
      const source = await sourceOf('cloudevents', {});
      expect(eventsOf(await source.request({ headers: { ...headers, 'content-type': type }, body }))).toMatchObject([
        { data, datacontenttype: type },
      ]);
    });

    const batchOf = (count: number, changes: object = {}): PlayedRequest => ({
      headers: { 'content-type': 'application/cloudevents-batch+json' },
      body: JSON.stringify(Array.from({ length: count }, (_, n) => ({ ...event, id: String(n), ...changes }))),
    });

    it('emits each event of a large batch once, also if the sender repeats the batch', async () => {
      const source = await sourceOf('cloudevents', {});
      expect((await source.request(batchOf(1000))).emits).toHaveLength(1000);
      expect(await source.request(batchOf(1000))).toEqual({ emits: [], reply: { status: 202, body: '' } });
      expect((await source.request(batchOf(200, { id: 'same' }))).emits).toHaveLength(1);
    });

    it('refuses a batch of more events than a run emits with 413, and emits none of them', async () => {
      expect(await (await sourceOf('cloudevents', {})).request(batchOf(1001))).toEqual({
        emits: [],
        reply: { status: 413, body: '{"error":"the batch has 1001 events; the limit is 1000"}' },
      });
    });

    it('refuses other access tokens with 401', async () => {
      const source = await sourceOf('cloudevents', { token: 'right' });
      const send = (more: PlayedRequest) => source.request({ body: '{"a":1}', ...more, headers: { ...json, ...headers, ...more.headers } });
      for (const more of [{}, { headers: { authorization: 'Bearer wrong' } }, { search: 'access_token=wrong' }, { method: 'OPTIONS' }])
        expect(await send(more)).toMatchObject({ emits: [], reply: { status: 401 } });
      expect((await send({ headers: { authorization: 'Bearer right' } })).reply?.status).toBe(202);
      expect((await send({ search: 'access_token=right' })).reply?.status).toBe(202);
    });

    it.each(['', ' '])('refuses every request with 401 if the access token is blank: %j', async (token) => {
      const source = await sourceOf('cloudevents', { token });
      for (const more of [{}, { search: `access_token=${encodeURIComponent(token)}` }])
        expect(await source.request({ body: '{}', headers: { ...json, ...headers }, ...more })).toMatchObject({
          emits: [],
          reply: { status: 401 },
        });
    });

    it('replies to the OPTIONS handshake of a sender, unless its origin is not allowed', async () => {
      const shake = async (props: object, headers: Record<string, string>) =>
        (await sourceOf('cloudevents', { ...props })).request({ method: 'OPTIONS', headers });
      const origin = { 'webhook-request-origin': 'eventemitter.example.com', 'webhook-request-rate': '120' };
      expect((await shake({}, origin)).reply?.status).toBe(200);
      expect((await shake({ origins: ['eventemitter.example.com'] }, origin)).reply?.status).toBe(200);
      expect((await shake({ origins: ['other.example.com'] }, origin)).reply?.status).toBe(403);
      expect((await shake({}, {})).reply?.status).toBe(400);
    });

    it('responds with 405 to a GET request, which cannot carry an event', async () => {
      expect((await (await sourceOf('cloudevents', {})).request({ method: 'GET' })).reply?.status).toBe(405);
    });
  });
});

/** The timestamp that a sender sends, without its signature. */
function timestampOnly(signed: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(signed).flatMap(([name, value]) =>
      /time|stamp/.test(name)
        ? [[name, value]]
        : name === 'stripe-signature'
          ? [[name, `${value.split(',')[0]},v1=${'0'.repeat(64)}`]]
          : [],
    ),
  );
}

import { describe, expect, it, jest } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook, WebhookVerificationError } from './verify-webhook.js';

const SECRET = `whsec_${Buffer.from('a secret of the webhook').toString('base64')}`;
const OTHER = `whsec_${Buffer.from('another secret').toString('base64')}`;
const NOW = Date.UTC(2026, 0, 31, 12);
const BODY = '{"order": 17, "name": "Zoë"}';

/** Headers as the reference implementation signs them. */
const signed = (secret: string, { body = BODY, at = NOW } = {}): Record<string, string> => ({
  'webhook-id': 'msg_1',
  'webhook-timestamp': String(at / 1000),
  'webhook-signature': new Webhook(secret).sign('msg_1', new Date(at), body),
});
const verify = (secret: string | string[], headers: Record<string, string>, body: string | Uint8Array = BODY): Promise<unknown> =>
  verifyWebhook(secret, headers, body, { now: NOW });

describe('verifyWebhook', () => {
  it('returns the event of a delivery that the reference implementation has signed', async () => {
    expect(await verify(SECRET, signed(SECRET))).toEqual({ order: 17, name: 'Zoë' });
    expect(await verify(SECRET, signed(SECRET), Buffer.from(BODY))).toEqual({ order: 17, name: 'Zoë' });
  });

  it('verifies the bytes of a body that begins with a byte order mark', async () => {
    const body = `\ufeff${BODY}`;
    expect(await verify(SECRET, signed(SECRET, { body }), Buffer.from(body))).toEqual({ order: 17, name: 'Zoë' });
    expect(await verify(SECRET, signed(SECRET, { body }), body)).toEqual({ order: 17, name: 'Zoë' });
  });

  it('accepts the Headers of a fetch Request', async () => {
    expect(await verifyWebhook(SECRET, new Headers(signed(SECRET)), BODY, { now: NOW })).toMatchObject({ order: 17 });
  });

  it('accepts any of several secrets and any of several signatures', async () => {
    expect(await verify([OTHER, SECRET], signed(SECRET))).toMatchObject({ order: 17 });
    const both = `${signed(OTHER)['webhook-signature']} ${signed(SECRET)['webhook-signature']}`;
    expect(await verify(SECRET, { ...signed(SECRET), 'webhook-signature': both })).toMatchObject({ order: 17 });
  });

  it('accepts signatures of several header lines, which a server joins by commas', async () => {
    const [other, ours] = [OTHER, SECRET].map((secret) => signed(secret)['webhook-signature']!);
    for (const signatures of [`${other}, ${ours}`, `${ours}, ${other}`, `v1a,${other} ${ours}`])
      expect(await verify(SECRET, { ...signed(SECRET), 'webhook-signature': signatures })).toMatchObject({ order: 17 });
  });

  it('computes one HMAC for each secret, however many signatures the request lists', async () => {
    const computed = [jest.spyOn(crypto.subtle, 'sign'), jest.spyOn(crypto.subtle, 'verify')];
    const digest = Buffer.alloc(32).toString('base64');
    const signatures = `${'v1,AA '.repeat(1000)}${`v1,${digest} `.repeat(100)}`;
    try {
      const refused = verify([OTHER, SECRET], { ...signed(SECRET), 'webhook-signature': signatures });
      await expect(refused).rejects.toThrow('no signature matches');
      expect(computed.map(({ mock }) => mock.calls.length)).toEqual([2, 0]);
    } finally {
      for (const spy of computed) spy.mockRestore();
    }
  });

  it.each([{ toleranceSeconds: NaN }, { toleranceSeconds: '5m' }, { toleranceSeconds: {} }, { toleranceSeconds: null }, { now: NaN }])(
    'throws TypeError for %j, which cannot be compared with the age of a delivery',
    async (options) => {
      const old = signed(SECRET, { at: Date.UTC(2001) });
      await expect(verifyWebhook(SECRET, old, BODY, { now: NOW, ...(options as object) })).rejects.toThrow(TypeError);
    },
  );

  it('accepts a delivery of any age if the tolerance is Infinity', async () => {
    const old = signed(SECRET, { at: Date.UTC(2001) });
    expect(await verifyWebhook(SECRET, old, BODY, { now: NOW, toleranceSeconds: Infinity })).toMatchObject({ order: 17 });
  });

  it.each<[string, Record<string, string>, string?]>([
    ['another secret', signed(OTHER)],
    ['another body', signed(SECRET), '{"order": 18}'],
    ['another id', { ...signed(SECRET), 'webhook-id': 'msg_2' }],
    ['a timestamp that was not signed', { ...signed(SECRET), 'webhook-timestamp': String(NOW / 1000 + 1) }],
    ['an old delivery', signed(SECRET, { at: NOW - 301_000 })],
    ['a delivery from the future', signed(SECRET, { at: NOW + 301_000 })],
    ['a missing signature', { ...signed(SECRET), 'webhook-signature': '' }],
    ['a signature that is cut off', { ...signed(SECRET), 'webhook-signature': `v1,${signed(SECRET)['webhook-signature']!.slice(3, 15)}` }],
    ['a signature that is not base64', { ...signed(SECRET), 'webhook-signature': 'v1,%%%' }],
    [
      'a signature of another version',
      { ...signed(SECRET), 'webhook-signature': signed(SECRET)['webhook-signature']!.replace('v1,', 'v2,') },
    ],
    ['a timestamp that is not a number', { ...signed(SECRET), 'webhook-timestamp': 'today' }],
  ])('refuses %s', async (_, headers, body = BODY) => {
    await expect(verify(SECRET, headers, body)).rejects.toThrow(WebhookVerificationError);
  });

  it.each<[string, unknown, unknown, unknown, string]>([
    ['a secret that is not base64', 'whsec_%', signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['an empty secret', '', signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['a secret without its prefix', 'nope', signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['no secret, as of a variable that is not set', undefined, signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['a second secret that is missing', [SECRET, undefined], signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['a number as the secret', 17, signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['no secret in a list', [], signed(SECRET), BODY, 'the secret must be whsec_ followed by base64'],
    ['no headers', SECRET, undefined, BODY, 'the headers of the request are required'],
    ['a parsed body', SECRET, signed(SECRET), JSON.parse(BODY), 'the body must be the text or the bytes of the request'],
    ['no body', SECRET, signed(SECRET), undefined, 'the body must be the text or the bytes of the request'],
  ])('throws TypeError for %s, which is a mistake of the receiver', async (_, secret, headers, body, message) => {
    const error: unknown = await verifyWebhook(secret as string, headers as Headers, body as string, { now: NOW }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(message);
  });
});

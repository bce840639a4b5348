import { createHmac, randomUUID } from 'node:crypto';
import type { PostRequest } from './post.js';

interface Fixture {
  headers: Record<string, string>;
  payload: unknown;
  /** The headers that sign the body. */
  sign: (secret: string, body: string, now: number) => Record<string, string>;
}

const hmac = (secret: string | Buffer, text: string, encoding: 'hex' | 'base64'): string =>
  createHmac('sha256', secret).update(text).digest(encoding);
/** A new id in each request: receivers drop an id that they have seen. */
const newId = (prefix: string): string => `${prefix}_${randomUUID().replaceAll('-', '')}`;
const seconds = (now: number): string => String(Math.floor(now / 1000));

const github = (event: string, payload: object): Fixture => ({
  headers: { 'user-agent': 'GitHub-Hookshot/0', 'x-github-event': event, 'x-github-delivery': randomUUID() },
  payload: { ...payload, repository: { id: 1, full_name: 'octo/hello', private: false }, sender: { id: 1, login: 'octo' } },
  sign: (secret, body) => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body, 'hex')}` }),
});

const stripe = (type: string, object: object): Fixture => ({
  headers: {},
  payload: { id: newId('evt'), object: 'event', type, created: 1_763_715_600, livemode: false, data: { object } },
  sign: (secret, body, now) => ({ 'stripe-signature': `t=${seconds(now)},v1=${hmac(secret, `${seconds(now)}.${body}`, 'hex')}` }),
});

const slack = (payload: object): Fixture => ({
  headers: {},
  payload,
  sign: (secret, body, now) => ({
    'x-slack-request-timestamp': seconds(now),
    'x-slack-signature': `v0=${hmac(secret, `v0:${seconds(now)}:${body}`, 'hex')}`,
  }),
});

const FIXTURES: Record<string, () => Fixture> = {
  'github.ping': () => github('ping', { zen: 'Keep it logically awesome.', hook_id: 1 }),
  'github.push': () =>
    github('push', {
      ref: 'refs/heads/main',
      before: '0'.repeat(40),
      after: '1'.repeat(40),
      commits: [
        { id: '1'.repeat(40), message: 'Fix a typo', timestamp: '2026-01-31T12:00:00Z', added: [], removed: [], modified: ['README.md'] },
      ],
      pusher: { name: 'octo' },
    }),
  'github.issues': () => github('issues', { action: 'opened', issue: { id: 1, number: 17, title: 'It does not work', state: 'open' } }),
  'gitlab.push': () => ({
    headers: { 'x-gitlab-event': 'Push Hook', 'x-gitlab-event-uuid': randomUUID() },
    payload: {
      object_kind: 'push',
      ref: 'refs/heads/main',
      user_name: 'Octo',
      project: { id: 1, path_with_namespace: 'octo/hello' },
      commits: [],
    },
    sign: (secret) => ({ 'x-gitlab-token': secret }),
  }),
  'stripe.payment_intent.succeeded': () =>
    stripe('payment_intent.succeeded', { id: 'pi_1', object: 'payment_intent', amount: 1700, currency: 'eur', status: 'succeeded' }),
  'stripe.charge.failed': () => stripe('charge.failed', { id: 'ch_1', object: 'charge', amount: 1700, currency: 'eur', status: 'failed' }),
  'shopify.orders.create': () => ({
    headers: { 'x-shopify-topic': 'orders/create', 'x-shopify-shop-domain': 'example.myshopify.com', 'x-shopify-webhook-id': randomUUID() },
    payload: { id: 17, name: '#1017', total_price: '17.00', currency: 'EUR', line_items: [{ title: 'Teapot', quantity: 1 }] },
    sign: (secret, body) => ({ 'x-shopify-hmac-sha256': hmac(secret, body, 'base64') }),
  }),
  'slack.message': () =>
    slack({
      type: 'event_callback',
      team_id: 'T1',
      event_id: newId('Ev'),
      event: { type: 'message', channel: 'C1', user: 'U1', text: 'hello', ts: '1763715600.000100' },
    }),
  'slack.url_verification': () => slack({ type: 'url_verification', challenge: 'c3b9e1' }),
  'standard-webhooks': () => {
    const id = newId('msg');
    return {
      headers: { 'webhook-id': id },
      payload: { type: 'order.created', data: { order: 17 } },
      sign: (secret, body, now) => ({
        'webhook-timestamp': seconds(now),
        'webhook-signature': `v1,${hmac(Buffer.from(secret.replace(/^whsec_/, ''), 'base64'), `${id}.${seconds(now)}.${body}`, 'base64')}`,
      }),
    };
  },
  json: () => ({ headers: {}, payload: { order: 17 }, sign: () => ({}) }),
};

export const FIXTURE_NAMES = Object.keys(FIXTURES);

/** A request of an app, signed if a secret is given; undefined if no fixture has this name. */
export function fixtureRequest(name: string, secret?: string, now = Date.now()): PostRequest | undefined {
  const fixture = Object.hasOwn(FIXTURES, name) ? FIXTURES[name]!() : undefined;
  if (!fixture) return undefined;
  const body = JSON.stringify(fixture.payload);
  const signed = secret === undefined ? {} : fixture.sign(secret, body, now);
  return { headers: { 'content-type': 'application/json', ...fixture.headers, ...signed }, body };
}

import { createHmac } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { verifyWebhook } from '@sluice/client';
import { FIXTURE_NAMES, fixtureRequest } from './fixtures.js';

const NOW = 1_763_715_600_000;
const hmac = (text: string): string => createHmac('sha256', 'secret').update(text).digest('hex');

describe('fixtureRequest', () => {
  it.each(FIXTURE_NAMES)('%s is JSON, and has no signature without a secret', (name) => {
    const { headers, body } = fixtureRequest(name)!;
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).toBeInstanceOf(Object);
    expect(Object.keys(headers).filter((header) => /signature|hmac|token/.test(header))).toEqual([]);
  });

  it.each(FIXTURE_NAMES.filter((name) => !['json', 'slack.url_verification'].includes(name)))(
    '%s has a new id in each request, so that a receiver does not drop it',
    (name) => expect(fixtureRequest(name)).not.toEqual(fixtureRequest(name)),
  );

  it('signs as each app does', async () => {
    const github = fixtureRequest('github.push', 'secret', NOW)!;
    expect(github.headers['x-hub-signature-256']).toBe(`sha256=${hmac(github.body)}`);
    const stripe = fixtureRequest('stripe.charge.failed', 'secret', NOW)!;
    expect(stripe.headers['stripe-signature']).toBe(`t=1763715600,v1=${hmac(`1763715600.${stripe.body}`)}`);
    const slack = fixtureRequest('slack.message', 'secret', NOW)!;
    expect(slack.headers['x-slack-signature']).toBe(`v0=${hmac(`v0:1763715600:${slack.body}`)}`);
    const secret = `whsec_${Buffer.from('secret').toString('base64')}`;
    const standard = fixtureRequest('standard-webhooks', secret, NOW)!;
    expect(await verifyWebhook(secret, standard.headers, standard.body, { now: NOW })).toMatchObject({ type: 'order.created' });
  });

  it('does not exist for other names', () => {
    expect([fixtureRequest('none'), fixtureRequest('constructor')]).toEqual([undefined, undefined]);
  });
});

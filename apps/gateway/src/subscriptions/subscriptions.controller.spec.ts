import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import type { FastifyRequest } from 'fastify';
import { listSubscriptions, newId, type Subscription, SUBSCRIPTIONS_PER_REPLY } from '#contracts';
import { Messages } from '#messaging';
import { FakeMessages } from '#testing';
import { RequestPipe } from '../http/request.pipe.js';
import { AutoSubscriptionParameters, NewAutoSubscription, SubscriptionParameters } from './subscription.dto.js';
import { SubscriptionsController } from './subscriptions.controller.js';

it.each([
  ['twice as many and one', 2 * SUBSCRIPTIONS_PER_REPLY + 1],
  ['exactly twice as many', 2 * SUBSCRIPTIONS_PER_REPLY],
])('lists more subscriptions than a reply of the routing service has: %s', async (_, length) => {
  const ids = Array.from({ length }, () => newId('subscription'))
    .sort()
    .reverse();
  const all = ids.map((id) => ({ id }) as Subscription);
  const messages = new FakeMessages().replyTo(listSubscriptions, ({ before }) => {
    const from = before === undefined ? 0 : all.findIndex(({ id }) => id === before) + 1;
    return all.slice(from, from + SUBSCRIPTIONS_PER_REPLY);
  });
  const module = await Test.createTestingModule({
    controllers: [SubscriptionsController],
    providers: [{ provide: Messages, useValue: messages }],
  }).compile();
  const body = await module.get(SubscriptionsController).list(newId('user'), { query: {} } as FastifyRequest);
  expect(JSON.parse(await text(body as Readable))).toEqual({ data: all });
  expect(messages.requests).toHaveLength(3);
});

it.each([{}, { event_name: '' }])('refuses a new auto-subscription with the event name of %j', async (given) => {
  const query = { listener_id: 'wh_1', ...given };
  await expect(new RequestPipe().transform(query, { type: 'query', metatype: NewAutoSubscription })).rejects.toMatchObject({
    details: { errors: [{ field: 'event_name', message: expect.stringContaining('event_name is required') }] },
  });
});

it.each<[string, new () => object, object, string[]]>([
  ['two bad ids', SubscriptionParameters, { emitter_id: 'x', listener_id: 'y' }, ['emitter_id', 'listener_id']],
  [
    'two bad ids and a bad stream',
    SubscriptionParameters,
    { emitter_id: 'x', listener_id: 'y', event_name: '$z' },
    ['emitter_id', 'listener_id', 'event_name'],
  ],
  [
    'no emitter, a bad id and a bad stream',
    SubscriptionParameters,
    { listener_id: 'y', event_name: '$z' },
    ['emitter_id', 'listener_id', 'event_name'],
  ],
  ['a bad id and no listener', SubscriptionParameters, { emitter_id: 'x' }, ['emitter_id', 'listener_id']],
  ['a bad listener and no stream', NewAutoSubscription, { listener_id: 'x' }, ['listener_id', 'event_name']],
  ['a bad listener and a bad stream', NewAutoSubscription, { listener_id: 'x', event_name: '$z' }, ['listener_id', 'event_name']],
  ['a bad listener and no stream', AutoSubscriptionParameters, { listener_id: 'x' }, ['listener_id', 'event_name']],
  ['a bad listener and a bad stream', AutoSubscriptionParameters, { listener_id: 'x', event_name: '$z' }, ['listener_id', 'event_name']],
])('names each bad parameter at once, in their order: %s (%p)', async (_, metatype, query, fields) => {
  await expect(new RequestPipe().transform(query, { type: 'query', metatype })).rejects.toMatchObject({
    details: { errors: fields.map((field) => ({ field, message: expect.stringMatching(new RegExp(`^${field}\\b`)) })) },
  });
});

it('the auto-subscription to delete may have an empty event name', async () => {
  const query = { listener_id: 'wh_1', event_name: '' };
  await expect(new RequestPipe().transform(query, { type: 'query', metatype: AutoSubscriptionParameters })).resolves.toEqual(query);
});

it.each([
  [SubscriptionParameters, 'emitter_id'],
  [SubscriptionParameters, 'listener_id'],
  [AutoSubscriptionParameters, 'listener_id'],
  [AutoSubscriptionParameters, 'event_name'],
  [NewAutoSubscription, 'event_name'],
])('%p says whether %s is missing or not a string', async (metatype, field) => {
  const given = { emitter_id: 'dc_1', listener_id: 'wh_1', event_name: 'default' };
  const problem = (value: unknown) =>
    new RequestPipe({ validateCustomDecorators: true })
      .transform({ ...given, [field]: value }, { type: 'custom', metatype })
      .catch(({ details }) => details.errors);
  for (const absent of [undefined, null])
    expect(await problem(absent)).toEqual([{ field, message: expect.stringMatching(/ is required\b/) }]);
  for (const value of [5, true, ['dc_1'], { id: 'dc_1' }])
    expect(await problem(value)).toEqual([{ field, message: `${field} must be a string` }]);
});

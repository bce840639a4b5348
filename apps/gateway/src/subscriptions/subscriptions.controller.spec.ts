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

it('names all bad parameters of a subscription at once', async () => {
  const parameters = new RequestPipe().transform({ event_name: '$x' }, { type: 'query', metatype: SubscriptionParameters });
  await expect(parameters).rejects.toMatchObject({
    details: {
      errors: expect.arrayContaining([
        { field: 'event_name', message: 'event_name may begin with $ only as $errors or $logs' },
        expect.objectContaining({ field: 'emitter_id' }),
        expect.objectContaining({ field: 'listener_id' }),
      ]),
    },
  });
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

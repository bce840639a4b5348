import { expect, it } from '@jest/globals';
import { findEmitters, getSource } from '#contracts';
import { FakeMessages } from './fake-messages.js';

it('refuses a request that the service would refuse', async () => {
  const messages = new FakeMessages().replyTo(getSource, () => ({}) as never);
  const request = messages.request(getSource, { owner_id: 'u_1', id: 'wh_1' } as never, { account: 'u_1' });
  await expect(request).rejects.toMatchObject({ code: 'invalid' });
});

it('the fake of messages passes requests and replies as JSON', async () => {
  let received: object | undefined;
  const messages = new FakeMessages().replyTo(findEmitters, (payload) => {
    received = payload;
    return [{ at: new Date(0), absent: undefined }] as never;
  });
  const reply = await messages.request(findEmitters, { ids: ['dc_1'], unknown: true } as never, { account: 'u_1' });
  expect({ ...received }).toEqual({ ids: ['dc_1'] });
  expect(Object.entries(reply[0]!)).toEqual([['at', '1970-01-01T00:00:00.000Z']]);
});

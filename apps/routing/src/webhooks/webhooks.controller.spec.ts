import { expect, it } from '@jest/globals';
import { TooManyRequests, type UserId } from '#contracts';
import { WebhooksController } from './webhooks.controller.js';
import type { WebhooksService } from './webhooks.service.js';

it('few changes of webhooks of an account proceed at a time, some wait, and further ones are refused', async () => {
  let begun: UserId[] = [];
  const ends: (() => void)[] = [];
  const service = {
    delete: ({ owner_id }: { owner_id: UserId }) => {
      begun.push(owner_id);
      return new Promise<void>((resolve) => ends.push(resolve));
    },
  } as unknown as WebhooksService;
  const controller = new WebhooksController(service);
  const change = (owner_id: UserId) => controller.delete({ owner_id, id: 'wh_1' });
  const changes = Array.from({ length: 72 }, () => change('u_1'));
  await expect(change('u_1')).rejects.toThrow(TooManyRequests);
  changes.push(change('u_2'));
  await new Promise(setImmediate);
  expect(begun).toEqual([...Array<UserId>(8).fill('u_1'), 'u_2']);
  begun = [];
  for (let ended = 0; ended < 73; ended += 1) {
    ends[ended]?.();
    await new Promise(setImmediate);
  }
  await Promise.all(changes);
  expect(begun).toEqual(Array<UserId>(64).fill('u_1'));
});

import { describe, expect, it } from '@jest/globals';
import { Slots } from './slots.js';

describe('Slots', () => {
  it('are given in the order of the requests', async () => {
    const slots = new Slots(1);
    const order: number[] = [];
    await slots.take();
    const waiters = [1, 2, 3].map((n) => slots.take().then(() => order.push(n)));
    expect(slots.waiting).toBe(3);
    for (let i = 0; i < 3; i++) slots.give();
    await Promise.all(waiters);
    expect(order).toEqual([1, 2, 3]);
  });

  it('are not lost when a waiting caller has given up', async () => {
    const slots = new Slots(1);
    await slots.take();
    expect(await slots.take(5)).toBe(false);
    slots.give();
    expect(await slots.take(5)).toBe(true);
  });

  it('grow', async () => {
    const slots = new Slots(1);
    await slots.take();
    const second = slots.take();
    slots.grow(2);
    expect(await second).toBe(true);
    expect(await slots.take(5)).toBe(true);
    expect(await slots.take(5)).toBe(false);
  });
});

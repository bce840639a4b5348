import { expect, it } from '@jest/globals';
import type { UserId } from '#contracts';
import { DeliveryMemory, MOST_BYTES, type Reservation } from './delivery-memory.js';

const MIB = 1024 * 1024;
/** The largest delivery. */
const LEAST = MIB + 64 * 1024;
const OF_ACCOUNT = 0.75 * MOST_BYTES;

/** Reserves as often as possible without waiting; each time the whole reservation is used. */
async function fill(memory: DeliveryMemory, account: UserId): Promise<Reservation[]> {
  const reserved: Reservation[] = [];
  for (let waits = false; !waits;) {
    const reserving = memory.reserve(account, never).then((reservation) => void reserved.push(reservation!));
    waits = (await Promise.race([reserving, new Promise((resolve) => setImmediate(resolve, 'waits'))])) === 'waits';
  }
  return reserved;
}

const never = () => false;

const sumOf = (reserved: Reservation[]): number => reserved.reduce((sum, { bytes }) => sum + bytes, 0);
const parkedOf = (bytes: number) => [{ bytes }];

it('gives the backlogs of one account three quarters, each less than the one before and as much as a delivery may need', async () => {
  const reserved = await fill(new DeliveryMemory(MIB), 'u_1');
  expect(reserved.length).toBeGreaterThanOrEqual(20);
  expect(reserved[0]!.bytes).toBe(OF_ACCOUNT / 8);
  expect(reserved.at(-1)!.bytes).toBe(LEAST);
  expect(sumOf(reserved)).toBeLessThanOrEqual(OF_ACCOUNT);
  expect(sumOf(reserved)).toBeGreaterThan(OF_ACCOUNT - 2 * MIB);
});

it('gives the rest to other accounts, and all accounts together no more than there is', async () => {
  const memory = new DeliveryMemory(MIB);
  const reserved = [...(await fill(memory, 'u_1')), ...(await fill(memory, 'u_2')), ...(await fill(memory, 'u_3'))];
  expect(sumOf(reserved)).toBeLessThanOrEqual(MOST_BYTES);
  expect(sumOf(reserved)).toBeGreaterThan(MOST_BYTES - 2 * MIB);
});

it('lets those that wait begin in their order, when memory is free again', async () => {
  const memory = new DeliveryMemory(MIB);
  const reserved = await fill(memory, 'u_1');
  const begun: string[] = [];
  const begins = (name: string, account: UserId) => memory.reserve(account, never).then(() => begun.push(name));
  // behind the one that waits since `fill`
  void begins('second', 'u_1');
  void begins('other', 'u_2');
  await new Promise(setImmediate);
  expect(begun).toEqual(['other']);
  reserved.at(-1)!.keep([]);
  await new Promise(setImmediate);
  expect(begun).toEqual(['other']);
  reserved.at(-2)!.keep(parkedOf(1));
  reserved.at(-3)!.keep(parkedOf(1));
  await new Promise(setImmediate);
  expect(begun).toEqual(['other', 'second']);
});

it('serves accounts with the least memory first, however long others have waited', async () => {
  const memory = new DeliveryMemory(MIB);
  const reserved = [...(await fill(memory, 'u_1')), ...(await fill(memory, 'u_2'))];
  const begun: string[] = [];
  for (const account of ['u_1', 'u_2', 'u_3'] as const) void memory.reserve(account, never).then(() => begun.push(account));
  await new Promise(setImmediate);
  expect(begun).toEqual([]);
  reserved[0]!.keep([]);
  await new Promise(setImmediate);
  expect(begun[0]).toBe('u_3');
});

it('counts what is kept until it is freed', async () => {
  const memory = new DeliveryMemory(MIB);
  const one = (await memory.reserve('u_1', never))!;
  expect(one.isScarce(parkedOf(one.bytes / 4))).toBe(false);
  expect(one.isScarce(parkedOf(one.bytes / 2 + 1))).toBe(true);
  // larger than expected: one delivery is always taken
  one.keep(parkedOf(OF_ACCOUNT - 2 * MIB));
  const rest = await fill(memory, 'u_1');
  expect(sumOf(rest)).toBeLessThanOrEqual(2 * MIB);
  for (const each of rest) each.keep([]);
  memory.free('u_1', parkedOf(OF_ACCOUNT - 2 * MIB));
  // the request that waits since `fill` has begun
  const after = await fill(memory, 'u_1');
  expect(sumOf(after)).toBeGreaterThan(OF_ACCOUNT - 8 * MIB);
});

it('gives nothing to a drain that needs no memory any more, and leaves it to others', async () => {
  const memory = new DeliveryMemory(MIB);
  const reserved = await fill(memory, 'u_1');
  let isOver = false;
  const begun: string[] = [];
  for (const name of ['first', 'second'] as const)
    void memory.reserve('u_1', () => name === 'first' && isOver).then((given) => begun.push(`${name}: ${given ? 'some' : 'none'}`));
  isOver = true;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(begun).toEqual(['first: none']);
  reserved.at(-1)!.keep([]);
  reserved.at(-2)!.keep([]);
  await new Promise(setImmediate);
  expect(begun).toEqual(['first: none', 'second: some']);
});

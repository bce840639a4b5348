import { expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { DataSource } from 'typeorm';
import { Database } from './database.js';

it('a connection that is lost as it is taken from the pool is an error of its caller alone', async () => {
  const lost = new Error('Connection terminated unexpectedly');
  const released: unknown[] = [];
  const client = Object.assign(new EventEmitter(), {
    query: async () => {
      client.emit('error', lost);
      throw lost;
    },
    release: (isBroken: unknown) => released.push(isBroken),
  });
  const driver = { master: { connect: async () => client } };
  await expect(new Database({ driver } as unknown as DataSource).connect()).rejects.toBe(lost);
  expect(released).toEqual([true]);
});

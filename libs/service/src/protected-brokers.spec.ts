import { expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { ownHosts } from '#egress';
import { createLog } from '#observability';
import { ProtectedBrokersModule } from './protected-brokers.js';
import { ServiceModule, type Shared } from './service.module.js';

const log = createLog('test', 'silent');
const adminOf = (describeCluster: () => Promise<object>) => ({
  withAdmin: (work: (admin: { describeCluster(): unknown }) => unknown) => work({ describeCluster }),
});

async function start(kafka: object): Promise<void> {
  const imports = [ProtectedBrokersModule, ServiceModule.with({ kafka, log } as Shared)];
  const app = await Test.createTestingModule({ imports }).compile();
  await app.init();
  await app.close();
}

it('protects every broker in the metadata of the cluster before the service starts', async () => {
  await start(adminOf(async () => ({ brokers: [{ host: '203.0.113.7', port: 9092 }] })));
  expect(await ownHosts().refuses('203.0.113.7', 80)).toBe(true);
});

it('keeps the known brokers protected, and lets the service start, when the brokers do not respond', async () => {
  await start(adminOf(async () => ({ brokers: [{ host: '203.0.113.8', port: 9092 }] })));
  await start(adminOf(() => Promise.reject(new Error('no broker responds'))));
  expect(await ownHosts().refuses('203.0.113.8', 80)).toBe(true);
});

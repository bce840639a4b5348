import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { request } from 'undici';
import { AddressGuard, guardedAgent } from '#egress';
import { startMockInternet, type MockInternet } from './mock-internet-for-tests.js';

// Here and not in the library, because the servers with their certificate are here
describe('guardedAgent over TLS', () => {
  let internet: MockInternet;
  beforeAll(async () => (internet = await startMockInternet()));
  afterAll(() => internet.close());

  const agent = () =>
    guardedAgent(AddressGuard.fromConfig(internet.allowed, { lookup: async () => [{ address: '127.0.0.1' }] }), {
      maxResponseBytes: 64 * 1024,
      connect: { ca: internet.ca },
    });

  it('dials the address and checks the certificate of the name', async () => {
    const dispatcher = agent();
    const { body } = await request(`https://api.test:${internet.https}/x`, { dispatcher });
    expect(await body.json()).toMatchObject({ ok: true, url: '/x', host: `api.test:${internet.https}` });
    await dispatcher.close();
  });

  it.each(['other.test', '127.0.0.1'])('refuses the certificate for %s', async (host) => {
    const dispatcher = agent();
    await expect(request(`https://${host}:${internet.https}/`, { dispatcher })).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    await dispatcher.close();
  });
});

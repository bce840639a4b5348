import { describe, expect, it } from '@jest/globals';
import { AddressGuard } from '#egress';
import { privateAddressProblem } from './webhooks.service.js';

describe('a literal address in the URL of a webhook', () => {
  it.each(['http://10.0.0.1/', 'https://[::1]/x', 'http://192.168.1.1:8080/'])('may not be private: %s', async (url) => {
    expect(await privateAddressProblem(url, AddressGuard.fromConfig(''))).toMatch(/^url: .* SLUICE_ALLOW_PRIVATE_HOSTS /);
    expect(await privateAddressProblem(url, AddressGuard.fromConfig('10.0.0.0/8,::1,192.168.1.1'))).toBeNull();
  });
  it('may be public; names are judged later', async () => {
    for (const url of ['https://93.184.216.34/', 'https://localhost/', undefined])
      expect(await privateAddressProblem(url, AddressGuard.fromConfig(''))).toBeNull();
  });
});

import { describe, expect, it } from '@jest/globals';
import { webhookUrlProblem } from '#contracts';
import { AddressGuard } from '#egress';
import { privateAddressProblem } from './webhooks.service.js';

describe('the URL of a webhook', () => {
  it.each([
    'http://example.com',
    'https://example.com/',
    'https://example.com:8443/hooks/in?token=a%20b#here',
    'HTTPS://EXAMPLE.com',
    'http://localhost:3000/x',
    'http://127.0.0.1',
    'http://[::1]:8080/',
    'https://user:secret@example.com/',
    'https://bücher.example/ä',
    'http://a',
  ])('may be %s', (url) => {
    expect(webhookUrlProblem(url)).toBeNull();
  });

  it.each<[string | undefined, string]>([
    [undefined, 'missing'],
    ['', 'empty'],
    ['example.com/hooks', 'no protocol'],
    ['//example.com', 'no protocol'],
    ['ftp://example.com', 'another protocol'],
    ['mailto:someone@example.com', 'another protocol'],
    ['javascript:alert(1)', 'another protocol'],
    ['http:', 'no host'],
    ['http://', 'no host'],
    ['http:///path', 'no host'],
    ['https://?x', 'no host'],
    ['http:example.com', 'no slashes'],
    ['http:\\\\example.com', 'backslashes'],
    ['http://exa mple.com', 'a blank in the host'],
    [' http://example.com', 'a blank before'],
    ['http://example.com ', 'a blank behind'],
    ['http://example.com/a b', 'a blank in the path'],
    ['http://example.com/a\nb', 'a line break'],
    ['http://example.com/\0', 'a NUL'],
    ['http://example.com:99999', 'no such port'],
    ['http://[::1', 'half an address'],
    [`http://example.com/${'x'.repeat(2048)}`, 'too long'],
  ])('may not be %j: %s', (url) => {
    expect(webhookUrlProblem(url)).toMatch(/^url /);
  });
});

it('names a space in the URL of a webhook as the problem', () => {
  for (const url of [' http://example.com', 'http://example.com/a b'])
    expect(webhookUrlProblem(url)).toBe('url must not contain spaces or line breaks; write a space as %20');
});

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

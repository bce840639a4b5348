import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { CreateWebhook, UpdateWebhook, webhookUrlProblem } from './webhooks.js';

const IDS = { id: 'wh_000000000000000001', owner_id: 'u_000000000000000001' };
const URL = 'https://a.test/';
const badFields = (contract: typeof CreateWebhook | typeof UpdateWebhook, fields: object): string[] =>
  validateSync(plainToInstance<object, object>(contract, { ...IDS, ...fields }))
    .map(({ property }) => property)
    .sort();

it.each<[string, object, string[]]>([
  ['without a URL', {}, ['url']],
  ['with null as its URL', { url: null }, ['url']],
  ['with a URL that is a number', { url: 5 }, ['url']],
  ['with a URL of another protocol', { url: 'ftp://a.test/' }, ['url']],
  ['with an unpaired surrogate in its URL', { url: 'https://a.test/\ud800' }, ['url']],
  ['with a name that is too long', { url: URL, name: 'x'.repeat(256) }, ['name']],
  ['with a NUL character in its name', { url: URL, name: '\0' }, ['name']],
  ['with an unpaired surrogate in its name', { url: URL, name: 'a\ud800' }, ['name']],
  ['with a NUL character in its description', { url: URL, description: 'a\0b' }, ['description']],
  ['with several faults', { url: '', name: 5, description: 'x'.repeat(4097), rate_limit: 0 }, ['description', 'name', 'rate_limit', 'url']],
])('a webhook is not created %s', (_, fields, bad) => expect(badFields(CreateWebhook, fields)).toEqual(bad));

it('a webhook may have a name of 255 characters, as people count them, or none', () => {
  for (const name of ['😀'.repeat(255), null, undefined]) expect(badFields(CreateWebhook, { url: URL, name })).toEqual([]);
});

it('a change of a webhook names each bad field, and needs no URL', () => {
  expect(badFields(UpdateWebhook, {})).toEqual([]);
  expect(badFields(UpdateWebhook, { url: URL, name: null, active: false })).toEqual([]);
  expect(badFields(UpdateWebhook, { url: 'x', name: 5, active: 5 })).toEqual(['active', 'name', 'url']);
  for (const url of ['', null]) expect(badFields(UpdateWebhook, { url })).toEqual(['url']);
});

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
    'http://example.com./',
    `http://${'a'.repeat(63)}.example/`,
    'http://under_score.example/',
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
    ['http://example.com:0/', 'port 0'],
    ['http://./', 'only a dot as the host'],
    ['http://a..b/', 'an empty label'],
    ['http://.example.com/', 'an empty label at the beginning'],
    ['http://example.com../', 'two dots at the end'],
    [`https://${'a'.repeat(64)}.com/`, 'a label that is too long'],
    [`https://${'ü'.repeat(60)}.com/`, 'a label that is too long when it is encoded'],
    ['http://[::1', 'half an address'],
    [`http://example.com/${'x'.repeat(2048)}`, 'too long'],
  ])('may not be %j: %s', (url) => {
    expect(webhookUrlProblem(url)).toMatch(/^url /);
  });
});

it.each(['http://example.com:99999', 'http://example.com:99999/x', 'https://a:b@[::1]:65536?x', 'http://example.com:0'])(
  'refuses the webhook URL %s because of its port',
  (url) => {
    expect(webhookUrlProblem(url)).toBe('url must contain a port from 1 to 65535, or none');
  },
);

it('names a space in the URL of a webhook as the problem', () => {
  for (const url of [' http://example.com', 'http://example.com/a b'])
    expect(webhookUrlProblem(url)).toBe('url must not contain spaces or line breaks; write a space as %20');
});

import { expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { CreateWebhook, UpdateWebhook } from './webhooks.js';

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

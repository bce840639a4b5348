import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { MAX_JSON_DEPTH } from '#contracts';
import { MAX_ATTRIBUTES, MAX_ATTRIBUTES_BYTES } from './cloud-event.js';
import { MAX_EMIT_ID_LENGTH, MAX_EVENT_BYTES, MAX_ITEM_ID_LENGTH, MAX_SUMMARY_LENGTH } from './event-limits.js';

const page = readFileSync(new URL('../../../docs/reference/topics.md', import.meta.url), 'utf8');
const asyncapi = readFileSync(new URL('../../../docs/asyncapi.yaml', import.meta.url), 'utf8');

it.each([
  ['| `ce_id`', `at most ${MAX_EMIT_ID_LENGTH} characters`],
  ['| `ce_summary`', `at most ${MAX_SUMMARY_LENGTH.toLocaleString('en')} characters`],
  ['| `ce_itemid`', `at most ${MAX_ITEM_ID_LENGTH} characters`],
  ['| any other `ce_…`', `at most ${MAX_ATTRIBUTES}, together ${MAX_ATTRIBUTES_BYTES / 1024} KiB`],
  ['- A record is malformed', `larger than ${MAX_EVENT_BYTES >> 20} MiB or is nested deeper than ${MAX_JSON_DEPTH} levels`],
])('the line "%s" of docs/reference/topics.md states the limit: %s', (begin, limit) =>
  expect(page.split('\n').find((line) => line.startsWith(begin))).toContain(limit),
);

it.each([
  ['ce_id', MAX_EMIT_ID_LENGTH],
  ['ce_summary', MAX_SUMMARY_LENGTH],
  ['ce_itemid', MAX_ITEM_ID_LENGTH],
])('docs/asyncapi.yaml limits %s to %d characters', (header, limit) =>
  expect(asyncapi).toContain(`${header}: { type: string, maxLength: ${limit},`),
);

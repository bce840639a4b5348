import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { messagesWithTopics } from '#contracts';
import { LogRecord } from './log-record.js';
import { fieldsOf, payloadOf } from './payload.js';

const golden = new URL('../../contracts/src/golden/', import.meta.url);

it('there are examples of each message that has a topic', () => {
  expect(readdirSync(golden).sort()).toEqual(messagesWithTopics.map(({ name }) => `${name}.json`).sort());
});

/** A topic keeps records of older versions, a compacted one for years: these examples never change, and a new field gets a further one. */
describe.each(messagesWithTopics.map((message) => [message.name, message] as const))('a record of %s', (name, { topic, payload }) => {
  const examples = JSON.parse(readFileSync(new URL(`${name}.json`, golden), 'utf8')) as object[];

  it.each(examples.map((example, index) => [index, example]))(
    'is read with all of its fields, as an older version wrote it (%i)',
    async (_, example) => {
      const message = { key: null, value: Buffer.from(JSON.stringify(example)), offset: '0', timestamp: '0', attributes: 0, headers: {} };
      const read = await payloadOf<object>(payload, new LogRecord(topic, 0, message, 0));
      expect(read).toBeInstanceOf(payload);
      expect({ ...read }).toEqual(example);
    },
  );

  it('the golden file of a message has an example of each field', () => {
    expect([...new Set(examples.flatMap((example) => Object.keys(example)))].sort()).toEqual(fieldsOf(payload).sort());
  });
});

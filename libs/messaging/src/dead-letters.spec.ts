import { beforeEach, describe, expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { createLog } from '#observability';
import { deadLetterRecord, sendOrSetAside } from './dead-letters.js';
import { LogRecord } from './log-record.js';
import { type OutgoingRecord, sizeOf } from './publisher.js';

describe('a dead letter', () => {
  const copyOf = (message: object) => deadLetterRecord('routing', new LogRecord('events', 0, message as KafkaMessage, 0), 'no good');

  it('has the value, byte for byte, the key and the headers of the record', () => {
    const value = Buffer.from([0xff, 0]);
    expect(copyOf({ offset: '7', key: Buffer.from('k'), value, headers: { a: Buffer.from('b') } })).toMatchObject({
      key: 'k',
      value,
      headers: { a: 'b', 'dead-letter-reason': 'no good', 'dead-letter-topic': 'events', 'dead-letter-offset': '7' },
    });
  });

  it.each(['h', ''])('has its reason and position among the first thousand headers, of which a reader ignores the others: %j', (name) => {
    const headers = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`${name}${i}`, Buffer.from('x')]));
    const copied = Object.keys(copyOf({ offset: '7', key: null, value: null, headers }).headers ?? {}).slice(0, 1000);
    expect(copied).toEqual(
      expect.arrayContaining(['dead-letter-reason', 'dead-letter-topic', 'dead-letter-partition', 'dead-letter-offset']),
    );
  });

  it('has the headers that fit, also behind one that does not', () => {
    const headers = { first: Buffer.from('1'), long: Buffer.alloc(70_000, 'x'), ce_id: Buffer.from('2') };
    expect(copyOf({ offset: '7', key: null, value: null, headers }).headers).toEqual({
      ...{ first: '1', ce_id: '2', 'dead-letter-reason': 'no good', 'dead-letter-topic': 'events' },
      ...{ 'dead-letter-partition': '0', 'dead-letter-offset': '7' },
    });
  });

  // 2 MiB, the largest record of `events`: as text, these bytes would not fit into the dead-letter topic
  const bytes = Buffer.alloc(2 * 1024 * 1024, 0xff);

  it.each([
    ['key', { key: bytes, headers: {} }],
    ['header', { key: null, headers: { x: bytes } }],
    ['name of a header', { key: null, headers: { [bytes.toString()]: Buffer.from('x') } }],
    [
      'number of headers',
      { key: null, headers: Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`h${i}`, Buffer.from('x')])) },
    ],
  ])('is small although the %s of the record is large', (_, message) => {
    const copy = copyOf({ offset: '7', value: null, ...message });
    expect(sizeOf(copy) + Buffer.byteLength(copy.key)).toBeLessThan(100_000);
    expect(copy.headers).toMatchObject({ 'dead-letter-reason': 'no good' });
  });
});

describe('a record that Kafka refuses', () => {
  let sent: OutgoingRecord[];
  let refuses: (record: OutgoingRecord) => boolean;
  let failure: Error;
  const publisher = {
    send: async (records: OutgoingRecord[]) => {
      if (records.some(refuses)) throw failure;
      sent.push(...records);
    },
  };
  const send = (records: OutgoingRecord[]) => sendOrSetAside(records, { publisher, service: 'routing', log: createLog('test', 'silent') });
  const record = (key: string): OutgoingRecord => ({ topic: 'workflow-triggers', key, value: `value of ${key}`, headers: { a: 'b' } });

  beforeEach(() => {
    [sent, refuses] = [[], ({ key }) => key === 'large'];
    failure = Object.assign(new Error('too large'), { name: 'KafkaJSProtocolError', type: 'MESSAGE_TOO_LARGE' });
  });

  it('becomes a dead letter, and the others are sent in order', async () => {
    refuses = ({ topic, key }) => topic === 'workflow-triggers' && key === 'large';
    expect(await send(['first', 'large', 'last'].map(record))).toEqual([record('large')]);
    expect(sent).toEqual([
      record('first'),
      record('last'),
      {
        ...record('large'),
        topic: 'routing.dead-letter',
        headers: { a: 'b', 'dead-letter-reason': 'Kafka refuses the record: too large', 'dead-letter-topic': 'workflow-triggers' },
      },
    ]);
  });

  it('is given up if its dead letter is refused, too', async () => {
    await send(['first', 'large', 'last'].map(record));
    expect(sent.map(({ key }) => key)).toEqual(['first', 'last']);
  });

  it('is not one that Kafka did not take because it is down', async () => {
    failure = Object.assign(new Error('away'), { name: 'KafkaJSConnectionError' });
    await expect(send([record('large')])).rejects.toThrow('away');
    expect(sent).toEqual([]);
  });
});

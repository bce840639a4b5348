import { expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { Invalid, TimedOut } from '#contracts';
import { createLog } from '#observability';
import { ignored, type Outcome, rejected } from './handlers.js';
import { LogRecord } from './log-record.js';
import { laneFailures, Outcomes, Repeat } from './outcomes.js';
import { BadRecord } from './payload.js';
import type { OutgoingRecord } from './publisher.js';
import type { TransportOptions } from './transport.js';

class Away extends Error {}

const record = new LogRecord(
  'a.topic',
  3,
  { offset: '7', key: Buffer.from('k'), value: Buffer.from('v'), headers: {} } as unknown as KafkaMessage,
  0,
);

/** Settles a record whose handler takes these steps one after the other, and then repeats the last one. */
async function settle(...steps: (() => Outcome | void)[]): Promise<{ tries: number; deadLetters: OutgoingRecord[] }> {
  const deadLetters: OutgoingRecord[] = [];
  const options = {
    service: 'catalog',
    publisher: { send: async (records: OutgoingRecord[]) => void deadLetters.push(...records) },
    log: createLog('test', 'silent'),
    isTransient: (error: unknown) => error instanceof Away,
    outageOf: () => 'away',
  } as unknown as TransportOptions;
  let tries = 0;
  const run = new Outcomes(options).work(record, async () => (steps[tries++] ?? steps.at(-1))?.());
  for (;;) {
    try {
      await run();
      return { tries, deadLetters };
    } catch (error) {
      // as its lane does
      if (!(error instanceof Repeat)) throw error;
    }
  }
}

const reasonOf = ({ headers }: OutgoingRecord) => headers?.['dead-letter-reason'];
const fail = (error: Error) => () => {
  throw error;
};
const succeed = () => {};

it.each([
  { name: 'nothing', step: succeed },
  { name: 'ignored', step: () => ignored('known') },
])('finishes a record at once when the handler returns $name', async ({ step }) => {
  expect(await settle(step)).toEqual({ tries: 1, deadLetters: [] });
});

it.each([
  { name: 'returns rejected', step: () => rejected('no good') },
  { name: 'throws BadRecord', step: fail(new BadRecord('no good')) },
  { name: 'throws Invalid', step: fail(new Invalid('no good')) },
])('copies a record to the dead-letter topic, with the reason, when the handler $name', async ({ step }) => {
  const { tries, deadLetters } = await settle(step);
  expect(tries).toBe(1);
  expect(deadLetters.map(reasonOf)).toEqual(['no good']);
});

it.each([
  { name: 'throws what is transient', step: fail(new Away()) },
  { name: 'throws TimedOut', step: fail(new TimedOut('late')) },
])('retries a record for as long as the handler $name', async ({ step }) => {
  const { tries, deadLetters } = await settle(...Array.from({ length: 9 }, () => step), succeed);
  expect(tries).toBe(10);
  expect(deadLetters).toEqual([]);
});

it('retries a record a few times when the handler throws any other error, then rejects it', async () => {
  const { tries, deadLetters } = await settle(fail(new TypeError('a bug')));
  expect(tries).toBe(4);
  expect(deadLetters.map(reasonOf)).toEqual(['a bug']);
});

it('logs a hundred retries of a topic in a minute, however many records and attempts there are', async () => {
  const lines: string[] = [];
  const log = { warn: (_: object, message: string) => lines.push(message) };
  const outcomes = new Outcomes({ log, isTransient: () => true } as unknown as TransportOptions);
  for (let n = 0; n < 60; n++) {
    const work = outcomes.work(record, fail(new Away()));
    for (let attempt = 0; attempt < 2; attempt++) await expect(work()).rejects.toThrow(Repeat);
  }
  expect(lines).toEqual(Array(100).fill('record.retried'));
});

it('logs a hundred failures of lanes of a group in a minute as an outage, and as many that are none', () => {
  const lines: [string, object][] = [];
  const line = (level: string) => (fields: object) => lines.push([level, fields]);
  const log = { warn: line('warn'), error: line('error') } as unknown as TransportOptions['log'];
  const failed = laneFailures(log, { group: 'g', isTransient: (error) => error instanceof Away });
  const [away, bug] = [new Away(), new Error('bug')];
  for (let n = 0; n < 150; n++) failed(away, `lane ${n}`);
  for (let n = 0; n < 150; n++) failed(bug, `lane ${n}`);
  expect([lines.length, lines[0], lines[199]]).toEqual([
    200,
    ['warn', { group: 'g', lane: 'lane 0', err: away }],
    ['error', { group: 'g', lane: 'lane 99', err: bug }],
  ]);
});

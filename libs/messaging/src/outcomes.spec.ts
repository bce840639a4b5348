import { expect, it } from '@jest/globals';
import type { KafkaMessage } from 'kafkajs';
import { Invalid, TimedOut } from '#contracts';
import { createLog } from '#observability';
import { ignored, type Outcome, rejected, retry } from './handlers.js';
import { LogRecord } from './log-record.js';
import { Outcomes, Repeat } from './outcomes.js';
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
  { name: 'returns retry', step: () => retry('away') },
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

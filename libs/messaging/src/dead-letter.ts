import { deadLetterTopic, type Service } from '#contracts';
import { counter } from '#observability';
import type { LogRecord } from './log-record.js';
import type { Publisher } from './publisher.js';

const deadLetters = counter('dead_letters_total', 'Records that were copied to a dead-letter topic.', ['topic']);

/** Copies a record that cannot be handled, byte for byte, with the reason and its position. */
export async function sendToDeadLetter(publisher: Publisher, service: Service, record: LogRecord, reason: string): Promise<void> {
  deadLetters.inc({ topic: record.topic });
  await publisher.send([
    {
      topic: deadLetterTopic(service),
      key: record.key ?? '',
      value: record.value,
      headers: {
        ...record.headerEntries(),
        'dead-letter-reason': reason.slice(0, 1000),
        'dead-letter-topic': record.topic,
        'dead-letter-partition': String(record.partition),
        'dead-letter-offset': String(record.offset),
      },
    },
  ]);
}

import kafkajs from 'kafkajs';
import { outsideKafka } from './outside-kafka.js';
import { topic } from './target.js';

/** A Kafka producer that is independent of our code: a key, a value, optional headers. */
export async function outsideProducer(brokers: string) {
  const producer = outsideKafka(brokers).producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  return {
    emit: async (emitterId: string, events: unknown[], headers: Record<string, string> = {}): Promise<void> => {
      await producer.send({
        topic: topic('events'),
        acks: -1,
        messages: events.map((event) => ({ key: emitterId, value: JSON.stringify(event), headers })),
      });
    },
    /** Events of several emitters in one request. */
    emitAll: async (records: { emitterId: string; event: unknown }[]): Promise<void> => {
      const messages = records.map(({ emitterId, event }) => ({ key: emitterId, value: JSON.stringify(event) }));
      await producer.send({ topic: topic('events'), acks: -1, messages });
    },
    send: async (emitterId: string, value: Buffer, headers: Record<string, string> = {}): Promise<void> => {
      await producer.send({ topic: topic('events'), acks: -1, messages: [{ key: emitterId, value, headers }] });
    },
    close: () => producer.disconnect(),
  };
}

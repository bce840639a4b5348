import { outsideKafka } from './outside-kafka.js';
import { topic } from './target.js';

/** Registers an active workflow, as a workflow engine does. Resolves when Kafka has acknowledged it: from then on, every request and event finds it. */
export async function registerWorkflow(brokers: string, id: string, owner_id: string): Promise<void> {
  const producer = outsideKafka(brokers).producer();
  await producer.connect();
  await producer.send({
    topic: topic('workflows'),
    messages: [{ key: id, value: JSON.stringify({ id, owner_id, name: 'Story', active: true }) }],
  });
  await producer.disconnect();
}

// node workflow.mjs WORKFLOW_ID OWNER_ID: registers a workflow, and emits an invoice for each order that it receives.
import { once } from 'node:events';
import kafkajs from 'kafkajs';
import { connected, kafka } from './kafka.mjs';

const { Partitioners } = kafkajs;
const [id, owner_id] = process.argv.slice(2);
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
const consumer = kafka.consumer({ groupId: `example-${id}` });

await connected(producer);
await connected(consumer);
await consumer.subscribe({ topic: 'workflow-triggers', fromBeginning: true });
await consumer.run({
  async eachMessage({ message: { key, value, headers } }) {
    if (key?.toString() !== id) return;
    const { order, amount } = JSON.parse(value.toString());
    console.log(`order ${order} of ${headers.ce_source}`);
    await producer.send({
      topic: 'events',
      acks: -1,
      messages: [
        {
          key: id,
          value: JSON.stringify({ invoice: order, total: amount * 1.2 }),
          // the same for a repeated order, so that its invoice is one event
          headers: { ce_specversion: '1.0', ce_id: `invoice-${headers.ce_id}`, ce_hops: headers.ce_hops },
        },
      ],
    });
  },
});
await producer.send({ topic: 'workflows', acks: -1, messages: [{ key: id, value: JSON.stringify({ owner_id, name: 'Invoices' }) }] });
console.log('registered');

await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
// a record without a value removes the workflow
await producer.send({ topic: 'workflows', acks: -1, messages: [{ key: id, value: null }] });
await Promise.all([consumer.disconnect(), producer.disconnect()]);
process.exit();

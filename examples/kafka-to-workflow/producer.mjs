// node producer.mjs SOURCE_ID: emits three orders for a source, as CloudEvents in binary mode.
import kafkajs from 'kafkajs';
import { connected, kafka } from './kafka.mjs';

const { Partitioners } = kafkajs;
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });

await connected(producer);
await producer.send({
  topic: 'events',
  acks: -1,
  messages: [1, 2, 3].map((order) => ({
    key: process.argv[2],
    value: JSON.stringify({ order, amount: order * 10 }),
    headers: {
      ce_specversion: '1.0',
      ce_id: `order-${order}`,
      ce_source: '/shop',
      ce_type: 'order.created',
      ce_sluicestream: 'default',
    },
  })),
});
await producer.disconnect();

// node producer.mjs SOURCE_ID: emits three orders for a source, as CloudEvents in binary mode.
import kafkajs from 'kafkajs';

const { Kafka, Partitioners, logLevel } = kafkajs;
const kafka = new Kafka({ brokers: (process.env.KAFKA ?? 'localhost:9092').split(','), logLevel: logLevel.ERROR });
const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });

await producer.connect();
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

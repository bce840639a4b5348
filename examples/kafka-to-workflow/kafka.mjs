// The broker: KAFKA, or that of the Sluice that npm start runs in this clone.
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import kafkajs from 'kafkajs';

const { Kafka, logLevel } = kafkajs;

function brokers() {
  if (process.env.KAFKA) return process.env.KAFKA;
  const folder = resolve(import.meta.dirname, '../..', process.env.SLUICE_DATA_DIR || '.sluice');
  try {
    return JSON.parse(readFileSync(resolve(folder, 'running.json'), 'utf8')).SLUICE_LOCAL_KAFKA;
  } catch {
    return 'localhost:9092';
  }
}

export const kafka = new Kafka({ brokers: brokers().split(','), logLevel: logLevel.NOTHING });

/** Connects a producer or consumer. */
export async function connected(client) {
  try {
    await client.connect();
    return client;
  } catch {
    console.error(`Kafka cannot be reached at ${brokers()}: start Sluice with npm start, or set KAFKA to the address of its broker`);
    process.exit(1);
  }
}

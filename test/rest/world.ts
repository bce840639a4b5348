import type kafkajs from 'kafkajs';
import type { Answer, Api } from '../support/api.js';
import { outsideProducer } from '../support/producer.js';
import { Receiver } from '../support/receiver.js';
import { outsideKafka } from '../support/outside-kafka.js';
import type { System } from '../support/system.js';

/** What the stories of the REST API share: one system, a receiver of webhooks, a producer of events. */
export interface World {
  system: System;
  receiver: Receiver;
  producer: Awaited<ReturnType<typeof outsideProducer>>;
  kafka: kafkajs.Kafka;
  close(): Promise<void>;
}

export async function startWorld(system: System): Promise<World> {
  const receiver = await Receiver.start();
  const producer = await outsideProducer(system.brokers);
  const kafka = outsideKafka(system.brokers);
  return {
    system,
    receiver,
    producer,
    kafka,
    close: async () => {
      await Promise.all([producer.close(), system.stop(), receiver.close()]);
    },
  };
}

/** A component that does nothing but exist: events are emitted in its name from outside. */
export const QUIET = "export default { name: 'Quiet Source', version: '0.0.1', run() {} };";

/** A component of this name with these props, as code. */
export const componentOf = (name: string, props: object = {}, more = ''): string =>
  `export default { name: ${JSON.stringify(name)}, version: '0.0.1', props: ${JSON.stringify(props)}, ${more} run() {} };`;

/** A request with this body and content type, whatever they are. */
export const raw = (api: Api, method: string, path: string, body: string | Buffer | undefined, contentType?: string): Promise<Answer> =>
  api.raw(method, path, body, contentType === undefined ? {} : { 'content-type': contentType });

/** Makes names unique in an account that has others already. */
export const STAMP = Date.now().toString(36);

export const keysOf = (value: object): string[] => Object.keys(value).sort();

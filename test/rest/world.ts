import type kafkajs from 'kafkajs';
import type { ApiResponse, Api } from '../support/api.js';
import { outsideProducer } from '../support/producer.js';
import { Receiver } from '../support/receiver.js';
import { outsideKafka } from '../support/outside-kafka.js';
import type { System } from '../support/system.js';

/** The fixtures of the REST stories: one system, a receiver of webhooks, a producer of events. */
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

/** A component that does nothing: a producer emits events in the name of its sources. */
export const QUIET = "export default { name: 'Quiet Source', version: '0.0.1', run() {} };";

/** The code of a component with this name and these props. */
export const componentOf = (name: string, props: object = {}, more = ''): string =>
  `export default { name: ${JSON.stringify(name)}, version: '0.0.1', props: ${JSON.stringify(props)}, ${more} run() {} };`;

/** A request with an arbitrary body and content type. */
export const raw = (
  api: Api,
  method: string,
  path: string,
  body: string | Buffer | undefined,
  contentType?: string,
): Promise<ApiResponse> => api.raw(method, path, body, contentType === undefined ? {} : { 'content-type': contentType });

/** Makes names unique, because the account may have others. */
export const STAMP = Date.now().toString(36);

export const keysOf = (value: object): string[] => Object.keys(value).sort();

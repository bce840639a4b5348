import { type Service, Unavailable } from '#contracts';
import { KafkaClient, KafkaConfig, Messages, Publisher } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { within } from './within.js';

const CONNECT_WITHIN_MS = 30_000;
const CLOSE_WITHIN_MS = 5000;
/** A broker that refuses connections is an error after about ten seconds. */
const RETRIES = 10;

/** The messages of an operator's command to the other services, which it can use while it is connected. */
export interface CommandMessages {
  messages: Pick<Messages, 'request'>;
  /**
   * Connects to Kafka while `work` runs. A service waits for its brokers; a command fails, with Unavailable if they do not respond within 30 s. Requests
   * that still wait for them afterwards end with `runCommand`.
   */
  whileConnected(work: () => Promise<void>): Promise<void>;
}

export function commandMessages(service: Service): CommandMessages {
  let current: Messages | undefined;
  const request = ((...args: Parameters<Messages['request']>) => {
    if (!current) throw new Unavailable('the command is not connected to Kafka');
    return current.request(...args);
  }) as Messages['request'];
  const whileConnected = async (work: () => Promise<void>): Promise<void> => {
    // not sooner: other commands need no settings of Kafka
    const config = KafkaConfig.read();
    const log = createLog('sluice', 'fatal');
    const kafka = new KafkaClient(config, 'sluice', log, { retries: RETRIES });
    const publisher = new Publisher(kafka);
    const messages = (current = new Messages(service, kafka, publisher, log, new SecretBox([])));
    const noKafka = () => new Unavailable(`Kafka does not respond within ${CONNECT_WITHIN_MS / 1000} s at ${config.brokers.join(', ')}`);
    await within(CONNECT_WITHIN_MS, Promise.all([publisher.connect(), messages.connect()]), noKafka);
    try {
      await work();
    } finally {
      // the work is done, or its error is reported
      await within(CLOSE_WITHIN_MS, Promise.all([messages.close(), publisher.close()]), noKafka).catch(() => {});
    }
  };
  return { messages: { request }, whileConnected };
}

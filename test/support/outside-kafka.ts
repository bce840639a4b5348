import kafkajs from 'kafkajs';

/** How external clients log in to brokers that require it, by their bootstrap servers. */
export const logins = new Map<string, Pick<kafkajs.KafkaConfig, 'ssl' | 'sasl'>>();

/** A Kafka client that is independent of our code. */
export const outsideKafka = (brokers: string): kafkajs.Kafka =>
  new kafkajs.Kafka({
    clientId: 'outside',
    // longer than TCP takes to repeat a lost SYN: kafkajs leaves a timer behind when a connection opens after this time
    connectionTimeout: 10_000,
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    ...logins.get(brokers),
  });

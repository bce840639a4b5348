import kafkajs from 'kafkajs';

/** How clients outside log in to brokers that ask for it, by their bootstrap servers. */
export const logins = new Map<string, Pick<kafkajs.KafkaConfig, 'ssl' | 'sasl'>>();

/** A Kafka client that knows nothing of us. */
export const outsideKafka = (brokers: string): kafkajs.Kafka =>
  new kafkajs.Kafka({
    clientId: 'outside',
    brokers: brokers.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
    ...logins.get(brokers),
  });

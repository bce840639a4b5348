import { expect, it } from '@jest/globals';
import { KafkaConfig } from '../../libs/messaging/src/kafka.config.js';
import { kafkaLoginOptions, kafkaLoginVariables } from './kafka-login.mjs';

it('there is an option for each variable of the services, and for the file of each secret', () => {
  const declared = KafkaConfig.variables.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
  const options = declared.filter((name) => name !== 'KAFKA_BROKERS').map((name) => name.toLowerCase().replaceAll('_', '-'));
  expect(Object.keys(kafkaLoginOptions).sort()).toEqual(options.sort());
});

it('passes only the options that were given', () => {
  expect(kafkaLoginVariables({ url: 'http://localhost', 'kafka-security-protocol': 'ssl', 'kafka-ssl-ca-location': './ca.pem' })).toEqual({
    KAFKA_SECURITY_PROTOCOL: 'ssl',
    KAFKA_SSL_CA_LOCATION: './ca.pem',
  });
});

import { BadValue, variable } from '#config';

/** Lets several installations share a cluster. */
export const topicPrefix = variable('SLUICE_TOPIC_PREFIX', {
  fallback: '',
  description:
    'Prefix of the names of all topics and consumer groups, such as `staging.`, so that several installations can share a cluster.',
  parse: (value) => {
    if (!/^[\w.-]{0,64}$/.test(value)) throw new BadValue('must consist of at most 64 letters, digits, dots, underscores and hyphens');
    return value;
  },
});

/** The name of a topic or consumer group in Kafka. The whole process has one prefix, because the names of topics are constants. */
export function kafkaName(name: string): string {
  return `${process.env[topicPrefix.name] ?? ''}${name}`;
}

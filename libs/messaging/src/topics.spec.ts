import { describe, expect, it, jest } from '@jest/globals';
import type { Admin } from 'kafkajs';
import type { TopicSpec } from '#contracts';
import { createTopics, differences, limitedSettings } from './topics.js';

const settings = { partitions: 4, replicas: 3, minInSyncReplicas: 2 };
const partitions = (count: number, replicas = 3) =>
  ({ partitions: Array.from({ length: count }, () => ({ replicas: Array.from({ length: replicas }, (_, node) => node) })) }) as never;

const events: TopicSpec = {
  topic: 'events',
  partitions: 'configured',
  config: {
    'message.timestamp.type': 'LogAppendTime',
    'retention.ms': '1000',
    'max.message.bytes': '2000',
    'compression.type': 'uncompressed',
  },
};
const right: Record<string, string> = {
  'message.timestamp.type': 'LogAppendTime',
  'cleanup.policy': 'delete',
  'max.message.bytes': '2000',
  'retention.ms': '1000',
  'min.insync.replicas': '2',
  'compression.type': 'uncompressed',
};

const found = (changed: Record<string, string>, metadata = partitions(4), spec = events) =>
  differences(spec, settings, metadata, new Map(Object.entries({ ...right, ...changed })));

describe('an existing topic', () => {
  it('is accepted with the settings with which it is created', () => expect(found({})).toEqual({ wrong: [], different: [] }));

  it.each([
    [{ 'retention.ms': '-1' }, partitions(4)],
    [{ 'retention.ms': '5000' }, partitions(4)],
    [{ 'max.message.bytes': '9000' }, partitions(4)],
    [{ 'min.insync.replicas': '3' }, partitions(4)],
    [{}, partitions(4, 5)],
  ])('may exceed the requirements: %j', (changed, metadata) =>
    expect(found(changed as never, metadata)).toEqual({ wrong: [], different: [] }),
  );

  it.each([
    [{ 'message.timestamp.type': 'CreateTime' }, 'events has message.timestamp.type=CreateTime; set it to LogAppendTime'],
    [{ 'cleanup.policy': 'compact' }, 'events has cleanup.policy=compact; set it to delete'],
    [{ 'max.message.bytes': '1999' }, 'events has max.message.bytes=1999; set it to 2000'],
  ])('is wrong with %j', (changed, sentence) => expect(found(changed as never)).toEqual({ wrong: [sentence], different: [] }));

  it.each([
    [{ 'retention.ms': '999' }, partitions(4), 'events has retention.ms=999; set it to at least 1000'],
    [
      { 'compression.type': 'producer' },
      partitions(4),
      'events has compression.type=producer; set it to uncompressed, because a batch in a codec that Sluice cannot read would stop its consumers',
    ],
    [{ 'min.insync.replicas': '1' }, partitions(4), 'events has min.insync.replicas=1; set it to 2'],
    [{}, partitions(3), "events has 3 partitions, and SLUICE_PARTITIONS is 4; the topic's number is used"],
    [{}, partitions(4, 1), 'events has 1 replicas, and SLUICE_REPLICATION_FACTOR is 3'],
  ])('is different with %j', (changed, metadata, sentence) =>
    expect(found(changed as never, metadata)).toEqual({ wrong: [], different: [sentence] }),
  );

  it.each([
    ['999', 'runtime.run.execute has retention.ms=999; set it to at least 1000'],
    ['1000', undefined],
    [
      '1001',
      'runtime.run.execute has retention.ms=1001; set it to 1000, because older records would be handled again if the topic is read from its beginning',
    ],
    [
      '-1',
      'runtime.run.execute has retention.ms=-1; set it to 1000, because older records would be handled again if the topic is read from its beginning',
    ],
  ])('should not be kept longer than repeated records are recognised: retention.ms=%s', (kept, sentence) => {
    const spec: TopicSpec = {
      topic: 'runtime.run.execute',
      partitions: 'configured',
      config: { 'retention.ms': '1000' },
      isReadOnce: true,
    };
    expect(found({ 'retention.ms': kept }, partitions(4), spec)).toEqual({
      wrong: [],
      different: sentence === undefined ? [] : [sentence],
    });
  });

  it('must be compacted if its specification requires it', () => {
    const spec: TopicSpec = { topic: 'workflows', partitions: 'configured', config: { 'cleanup.policy': 'compact' } };
    expect(found({}, partitions(4), spec).wrong).toEqual(['workflows has cleanup.policy=delete; set it to compact']);
  });

  it('may have any number of partitions if one is enough', () => {
    const spec: TopicSpec = { topic: 'gateway.replies', partitions: 'one' };
    expect(found({}, partitions(8), spec)).toEqual({ wrong: [], different: [] });
  });
});

const [OF_TOPIC, OF_BROKER] = [1, 4];
const entry = (configName: string, configValue: string, configSource = OF_TOPIC) => ({ configName, configValue, configSource });

describe('a topic whose segments are short', () => {
  const spec: TopicSpec = { ...events, config: { ...events.config, 'segment.ms': '50' } };

  it('is different with longer segments', () => {
    expect(found({ 'segment.ms': '51' }, partitions(4), spec)).toEqual({
      wrong: [],
      different: [
        'events has segment.ms=51; set it to 50, because Kafka keeps a record until the newest one of its segment is older than retention.ms',
      ],
    });
    expect(found({ 'segment.ms': '50' }, partitions(4), spec).different).toEqual([]);
  });

  it('gets them from the migration if it has those of the broker, and keeps its other settings', () => {
    const actual = [entry('retention.ms', '7000'), entry('segment.ms', '51', OF_BROKER), entry('retention.bytes', '-1', OF_BROKER)];
    expect(limitedSettings(spec.config, actual)).toEqual([
      { name: 'retention.ms', value: '7000' },
      { name: 'segment.ms', value: '50' },
    ]);
  });

  it.each([[[entry('segment.ms', '99')]], [[entry('segment.ms', '49', OF_BROKER)]], [[]]])(
    'is left unchanged by the migration with %j',
    (actual) => expect(limitedSettings(spec.config, actual)).toBeUndefined(),
  );
});

describe('a topic of requests or replies', () => {
  const spec: TopicSpec = {
    topic: 'gateway.replies',
    partitions: 'one',
    config: { 'retention.bytes': '5000', 'segment.bytes': '100', 'max.message.bytes': '2000' },
  };

  it('a topic without a limit of its size is different', () => {
    expect(found({ 'retention.bytes': '-1' }, partitions(1), spec).different).toEqual([
      'gateway.replies has retention.bytes=-1; set it to 5000, as `sluice migrate` does, because large replies could fill the disk of the brokers',
    ]);
    expect(found({ 'retention.bytes': '1' }, partitions(1), spec).different).toEqual([]);
  });

  it('gets the limit, and keeps its other settings', () => {
    const actual = [
      entry('retention.ms', '7000'),
      entry('max.message.bytes', '9000'),
      entry('retention.bytes', '-1', OF_BROKER),
      entry('flush.ms', '4', OF_BROKER),
    ];
    expect(limitedSettings(spec.config, actual)).toEqual([
      { name: 'retention.ms', value: '7000' },
      { name: 'max.message.bytes', value: '9000' },
      { name: 'retention.bytes', value: '5000' },
      { name: 'segment.bytes', value: '100' },
    ]);
  });

  it.each([[[entry('retention.bytes', '99')]], [[entry('retention.bytes', '99', OF_BROKER)]], [[]]])(
    'is left unchanged with the limit of its operator, or if nothing is known of it: %j',
    (actual) => expect(limitedSettings(spec.config, actual)).toBeUndefined(),
  );
});

describe('missing topics', () => {
  const failure = (type: string) => Object.assign(new Error(type), { type });
  const create = (...failures: string[]) => {
    const fetchTopicMetadata = jest.fn<Admin['fetchTopicMetadata']>().mockResolvedValue({ topics: [] });
    for (const type of failures) fetchTopicMetadata.mockRejectedValueOnce(failure(type));
    const admin = { listTopics: async () => ['kept'], createTopics: async () => true, fetchTopicMetadata } as unknown as Admin;
    return createTopics({ withAdmin: (work) => work(admin) }, [events, { ...events, topic: 'kept' }], settings);
  };

  it('are created, and usable even if a broker learns of them later', async () => {
    expect(await create('UNKNOWN_TOPIC_OR_PARTITION', 'LEADER_NOT_AVAILABLE')).toEqual(['events']);
  });

  it('are not awaited after another failure', async () => {
    await expect(create('TOPIC_AUTHORIZATION_FAILED')).rejects.toThrow('TOPIC_AUTHORIZATION_FAILED');
  });
});

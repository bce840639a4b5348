import { afterAll, beforeAll, expect, it } from '@jest/globals';
import kafkajs, { type Kafka } from 'kafkajs';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { brokerAccess } from '../scripts/stores/broker-access.mjs';
import { startBroker } from '../scripts/stores/broker.mjs';
import { freePort } from '../scripts/shell/ports.mjs';
import { KafkaClient, KafkaConfig, Publisher } from '../libs/messaging/src/index.js';
import { createLog } from '../libs/observability/src/index.js';
import { eventually } from './support/eventually.js';
import { needing } from './support/target.js';

const topics = ['events', 'workflows', 'workflow-triggers', 'routing.requests'];

/** Like the topic `events`: the broker decompresses what is sent. */
const DECOMPRESSED = { numPartitions: 1, configEntries: [{ name: 'compression.type', value: 'uncompressed' }] };
/** Compressed records, of which the first begins with its length as a varint: almost 2 GiB. */
const BOMB = gzipSync(Buffer.from([0xfe, 0xff, 0xff, 0xff, 0x0e]));

const { GZIP, Snappy, LZ4, ZSTD } = kafkajs.CompressionTypes;
const int32 = (value: number): Buffer => Buffer.from([value >>> 24, value >> 16, value >> 8, value]);
/** One literal, of at most 60 bytes. */
const snappy = (records: Buffer): Buffer => Buffer.concat([Buffer.from([records.length, (records.length - 1) << 2]), records]);
/** Small batches as clients compress them. kafkajs can do only the first. */
const CODECS: [string, kafkajs.CompressionTypes, (records: Buffer) => Buffer][] = [
  ['gzip', GZIP, gzipSync],
  ['zstd', ZSTD, zstdCompressSync],
  ['snappy as librdkafka does', Snappy, snappy],
  [
    'snappy as Java does',
    Snappy,
    (records) => Buffer.concat([Buffer.from('\x82SNAPPY\0', 'latin1'), int32(1), int32(1), int32(snappy(records).length), snappy(records)]),
  ],
  [
    'lz4',
    LZ4,
    // a header with its checksum, a block that is stored, and the end
    (records) => Buffer.concat([Buffer.from('04224d18604082', 'hex'), Buffer.from([records.length, 0, 0, 0x80]), records, int32(0)]),
  ],
];

/** Sends records whose compressed form is what `compress` returns. */
async function sendCompressed(
  producer: kafkajs.Producer,
  topic: string,
  codec: kafkajs.CompressionTypes,
  compress: (records: Buffer) => Buffer,
): Promise<void> {
  const codecs = kafkajs.CompressionCodecs as Record<kafkajs.CompressionTypes, () => unknown>;
  const usual = codecs[codec];
  codecs[codec] = () => ({ compress: async ({ buffer }: { buffer: Buffer }) => compress(buffer) });
  try {
    await producer.send({ topic, acks: -1, compression: codec, messages: [{ value: '{}' }] });
  } finally {
    codecs[codec] = usual;
  }
}

type Access = Awaited<ReturnType<typeof brokerAccess>>;

/** The broker of `npm start`; it starts with data of a version without logins, in a folder whose name means something in a configuration: these are the harder cases. */
needing('processes').describe('the embedded broker', () => {
  let parent: string;
  let dir: string;
  let port: number;
  let access: Access;
  let broker: Awaited<ReturnType<typeof startBroker>>;
  let outside: Kafka;

  const start = async (): Promise<void> => {
    access = await brokerAccess(dir, port);
    broker = await startBroker({ dir, port, controllerPort: access.controllerPort, security: access.security });
  };
  const kafka = (options: Partial<kafkajs.KafkaConfig>): Kafka =>
    new kafkajs.Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: kafkajs.logLevel.NOTHING, retry: { retries: 0 }, ...options });
  const services = async (): Promise<Kafka> =>
    kafka({
      brokers: [access.environment.KAFKA_BROKERS!],
      sasl: {
        mechanism: 'scram-sha-512',
        username: access.environment.KAFKA_SASL_USERNAME!,
        password: (await readFile(access.environment.KAFKA_SASL_PASSWORD_FILE!, 'utf8')).trim(),
      },
    });
  /** The broker does not know a new topic at once. With a new client for each attempt: one does not ask again. */
  const untilKnown = (topic: string): Promise<unknown> =>
    eventually(async () => asAdmin(await services(), (admin) => admin.fetchTopicOffsets(topic)));

  beforeAll(async () => {
    [parent, port] = [await mkdtemp(join(tmpdir(), 'sluice-test-')), await freePort()];
    dir = join(parent, 'Büro, a\\b=日本 ');
    const open = await startBroker({ dir, port });
    await create(kafka({ brokers: [open.brokers] }), ...topics);
    await open.stop();
    await start();
    outside = kafka({});
  });
  afterAll(async () => {
    await broker?.stop();
    await rm(parent, { recursive: true, force: true });
  });

  it('keeps the data of a version without logins, and accepts the services', async () => {
    const listed = await asAdmin(await services(), (admin) => admin.listTopics());
    expect(listed).toEqual(expect.arrayContaining(topics));
  });

  it('shows only the public topics to a client without a login', async () => {
    expect((await asAdmin(outside, (admin) => admin.listTopics())).sort()).toEqual(['events', 'workflow-triggers', 'workflows']);
  });

  it('lets a client without a login write and read events', async () => {
    const producer = outside.producer({ idempotent: true, retry: { retries: 2 } });
    const consumer = kafka({ retry: { retries: 5 } }).consumer({ groupId: 'anybody' });
    await producer.connect();
    await producer.send({ topic: 'events', messages: [{ key: 'dc_1', value: '{}' }] });
    await producer.disconnect();
    await consumer.connect();
    await consumer.subscribe({ topic: 'events', fromBeginning: true });
    const read = new Promise((resolve) => void consumer.run({ eachMessage: async ({ message }) => resolve(message.key?.toString()) }));
    expect(await read).toBe('dc_1');
    await consumer.disconnect();
  });

  it('lets the services commit their offsets', async () => {
    const position = { groupId: 'event-store.events', topic: 'events', partitions: [{ partition: 0, offset: '1' }] };
    await asAdmin(await services(), (admin) => admin.setOffsets(position));
  });

  it.each<[string, (outside: Kafka) => Promise<unknown>]>([
    ['create a topic', (k) => create(k, 'x')],
    ['delete a topic', (k) => asAdmin(k, (a) => a.deleteTopics({ topics: ['events'] }))],
    ['delete records', (k) => asAdmin(k, deleteRecords)],
    ['change a topic', (k) => asAdmin(k, (a) => a.createPartitions({ topicPartitions: [{ topic: 'events', count: 9 }] }))],
    ['list the permissions', (k) => asAdmin(k, (a) => a.describeAcls(anyAcl))],
    ['write a request to a service', (k) => send(k, 'routing.requests')],
    ['write a trigger', (k) => send(k, 'workflow-triggers')],
    [
      'move a service’s position',
      (k) =>
        asAdmin(k, (a) => a.setOffsets({ groupId: 'event-store.events', topic: 'events', partitions: [{ partition: 0, offset: '9' }] })),
    ],
    ['delete a service’s group', (k) => asAdmin(k, (a) => a.deleteGroups(['event-store.events']))],
  ])('does not allow a client without a login to %s', async (_, act) => {
    await expect(act(outside)).rejects.toThrow();
    await asAdmin(await services(), async (admin) => {
      expect((await admin.listTopics()).filter((topic) => !topic.startsWith('__')).sort()).toEqual([...topics].sort());
      const {
        topics: [events],
      } = await admin.fetchTopicMetadata({ topics: ['events'] });
      expect(events!.partitions).toHaveLength(1);
      expect(await admin.fetchTopicOffsets('events')).toMatchObject([{ low: '0', high: '1' }]);
      expect(await admin.fetchTopicOffsets('routing.requests')).toMatchObject([{ high: '0' }]);
      expect(await admin.fetchTopicOffsets('workflow-triggers')).toMatchObject([{ high: '0' }]);
      expect(await admin.fetchOffsets({ groupId: 'event-store.events', topics: ['events'] })).toMatchObject([
        { partitions: [{ offset: '1' }] },
      ]);
    });
  });

  it('rejects requests without a login to its controller and to the services’ port', async () => {
    for (const own of access.ports) expect(await speak(own, createTopicsRequest('smuggled'))).toBe('closed');
    expect(await asAdmin(await services(), (admin) => admin.listTopics())).not.toContain('smuggled');
  });

  it('makes its secrets readable by the owner only, and passes none of them in the arguments of a process', async () => {
    const password = (await readFile(join(dir, 'password'), 'utf8')).trim();
    for (const file of ['password', 'server.properties']) expect((await stat(join(dir, file))).mode & 0o077).toBe(0);
    for (const pid of (await readdir('/proc')).filter(Number)) {
      const seen = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      expect(seen).not.toContain(password);
    }
  });

  it('refuses a request that is announced as larger than any of a client', async () => {
    const announced = Buffer.alloc(4);
    announced.writeInt32BE(11 * 1024 * 1024);
    expect(await speak(port, announced)).toBe('closed');
  });

  it('stores uncompressed what producers compress with any codec', async () => {
    await create(await services(), { topic: 'compressed', ...DECOMPRESSED });
    await untilKnown('compressed');
    const kafka = await services();
    const [producer, consumer] = [kafka.producer(), kafka.consumer({ groupId: 'compressed' })];
    await producer.connect();
    for (const [, codec, compress] of CODECS) await sendCompressed(producer, 'compressed', codec, compress);
    await producer.disconnect();
    await consumer.connect();
    await consumer.subscribe({ topic: 'compressed', fromBeginning: true });
    const values: string[] = [];
    await new Promise<void>((resolve) => {
      const eachMessage = async ({ message }: kafkajs.EachMessagePayload) =>
        void (values.push(String(message.value)) === CODECS.length && resolve());
      void consumer.run({ eachMessage });
    });
    expect(values).toEqual(CODECS.map(() => '{}'));
    await consumer.disconnect();
    await asAdmin(kafka, (admin) => admin.deleteTopics({ topics: ['compressed'] }));
  });

  it('ends when a batch expands beyond its memory, and has everything that was acknowledged when it starts again', async () => {
    await create(await services(), { topic: 'expanding', ...DECOMPRESSED });
    await untilKnown('expanding');
    const producer = (await services()).producer();
    await producer.connect();
    await producer.send({ topic: 'expanding', acks: -1, messages: [{ value: '{}' }] });
    await expect(sendCompressed(producer, 'expanding', GZIP, () => BOMB)).rejects.toThrow();
    await producer.disconnect();
    expect(await broker.exited).toMatchObject({ code: 3 });
    await start();
    expect(await untilKnown('expanding')).toMatchObject([{ low: '0', high: '1' }]);
    await asAdmin(await services(), (admin) => admin.deleteTopics({ topics: ['expanding'] }));
  });

  it('writes a deletion once although its response is lost, and then the next one', async () => {
    await create(await services(), { topic: 'once', numPartitions: 1 });
    const end = async () => (await asAdmin(await services(), (admin) => admin.fetchTopicOffsets('once')))[0]?.high;
    let [lose, produced] = [true, 0];
    const socketFactory = ({ host, port: to, onConnect }: kafkajs.ISocketFactoryArgs) => {
      const socket = connect({ host, port: to }, onConnect);
      const [write, emit] = [socket.write.bind(socket), socket.emit.bind(socket)];
      let isProducing = false;
      return Object.assign(socket, {
        write: (data: Buffer, ...rest: never[]) => {
          // the number of a Produce request is 0
          isProducing = data.readInt16BE(4) === 0;
          if (isProducing) produced += 1;
          return write(data, ...rest);
        },
        emit: (event: string, ...rest: unknown[]) => {
          if (event !== 'data' || !isProducing || !lose) return emit(event, ...rest);
          lose = false;
          socket.destroy(new Error('the connection is lost'));
          return true;
        },
      });
    };
    const config = KafkaConfig.read(access.environment);
    const faulty = Object.create(config, { clientOptions: { value: () => ({ ...config.clientOptions(), socketFactory }) } }) as KafkaConfig;
    const publisher = new Publisher(new KafkaClient(faulty, 'test', createLog('test', 'silent')));
    const deletion = () => publisher.send([{ topic: 'once', key: 'dc_1', value: '{}' }], { once: true });
    await deletion();
    expect([produced, await end()]).toEqual([2, '1']);
    await deletion();
    expect([produced, await end()]).toEqual([3, '2']);
    await publisher.close();
    await asAdmin(await services(), (admin) => admin.deleteTopics({ topics: ['once'] }));
  });

  it('starts again with the same ports and password', async () => {
    const before = access;
    await broker.stop();
    await start();
    expect({ ports: access.ports, environment: access.environment }).toEqual({ ports: before.ports, environment: before.environment });
    expect(await asAdmin(await services(), (admin) => admin.listTopics())).toEqual(expect.arrayContaining(topics));
  });

  it('has all of its data in its folder, whatever the characters of its path', async () => {
    expect(await readdir(parent)).toEqual([basename(dir)]);
    expect(await readdir(join(dir, 'data'))).toContain('meta.properties');
  });

  it('takes over the data that an earlier version wrote to a folder whose name was misread', async () => {
    const [own, misread] = ['café', 'cafÃ©'].map((name) => join(parent, name)) as [string, string];
    const options = { dir: own, port: await freePort() };
    const before = await startBroker(options);
    await create(kafka({ brokers: [before.brokers] }), 'kept');
    await before.stop();
    await mkdir(misread);
    await rename(join(own, 'data'), join(misread, 'data'));

    const after = await startBroker(options);
    expect(await asAdmin(kafka({ brokers: [after.brokers] }), (admin) => admin.listTopics())).toContain('kept');
    await after.stop();
    expect(await readdir(parent)).not.toContain('cafÃ©');
  });

  it('sets another password if the file of the password is empty', async () => {
    await broker.stop();
    await writeFile(join(dir, 'password'), '');
    await start();
    expect(await readFile(join(dir, 'password'), 'utf8')).not.toBe('');
    expect(await asAdmin(await services(), (admin) => admin.listTopics())).toEqual(expect.arrayContaining(topics));
  });
});

async function deleteRecords(admin: kafkajs.Admin): Promise<void> {
  await admin.fetchTopicMetadata({ topics: ['events'] });
  await admin.deleteTopicRecords({ topic: 'events', partitions: [{ partition: 0, offset: '-1' }] });
}

const anyAcl = { resourceType: 1, resourcePatternType: 1, operation: 1, permissionType: 1 } as never;

async function asAdmin<T>(kafka: Kafka, work: (admin: kafkajs.Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/** kafkajs fails if it asks for the leader of a topic that its broker does not know yet; producers ask again. */
const create = (kafka: Kafka, ...topics: (string | kafkajs.ITopicConfig)[]): Promise<boolean> =>
  asAdmin(kafka, (admin) =>
    admin.createTopics({
      waitForLeaders: false,
      topics: topics.map((topic) => (typeof topic === 'string' ? { topic, numPartitions: 1 } : topic)),
    }),
  );

async function send(kafka: Kafka, topic: string): Promise<void> {
  const producer = kafka.producer();
  await producer.connect();
  try {
    await producer.send({ topic, messages: [{ value: '{}' }] });
  } finally {
    await producer.disconnect();
  }
}

/** Sends one request in Kafka's protocol without a client, and returns its outcome. */
function speak(port: number, request: Buffer): Promise<'response' | 'closed'> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(request));
    socket.on('data', () => {
      resolve('response');
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve('closed'));
  });
}

/** CreateTopics, version 5 (flexible): one topic of one partition. */
function createTopicsRequest(topic: string): Buffer {
  const short = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
  const int = (value: number): Buffer => Buffer.concat([short(value >>> 16), short(value & 65_535)]);
  const compact = (text: string): Buffer => Buffer.concat([Buffer.from([text.length + 1]), Buffer.from(text)]);
  const body = Buffer.concat([
    ...[short(19), short(5), randomBytes(4), short(1), Buffer.from('x'), Buffer.from([0])],
    ...[Buffer.from([2]), compact(topic), int(1), short(1), Buffer.from([1, 1, 0])],
    ...[int(5000), Buffer.from([0, 0])],
  ]);
  return Buffer.concat([int(body.length), body]);
}

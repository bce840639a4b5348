import { writeFile } from 'node:fs/promises';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { dump } from 'js-yaml';
import { KafkaClient, KafkaConfig, Consumers, Messages, MessagingModule, Publisher } from '#messaging';
import { createLog } from '#observability';
import { SecretBox, SecretsModule } from '#secrets';
import { LogModule } from '#service';
import { GatewayModule } from './gateway.module.js';
import { openApiDocument } from './http/openapi.js';

/** Writes the API's description to the file that is named: the app is put together, and nothing of it is connected. */
process.env.DATABASE_URL ??= 'postgres://nowhere';
const log = createLog('openapi', 'silent');
const kafka = new KafkaClient(KafkaConfig.read({}), 'openapi', log);
const publisher = new Publisher(kafka);
const box = new SecretBox([]);
class Root {}
Reflect.defineMetadata(
  'imports',
  [
    LogModule.with(log),
    SecretsModule.with(box),
    MessagingModule.with({ kafka, publisher, messages: new Messages('gateway', kafka, publisher, log, box), consumers: new Consumers() }),
    GatewayModule,
  ],
  Root,
);
const app = await NestFactory.create(Root, new FastifyAdapter(), { logger: false, preview: true });
const [, , file = 'docs/openapi.yaml'] = process.argv;
await writeFile(file, dump(openApiDocument(app), { noRefs: true, lineWidth: 140 }));
process.exit(0);

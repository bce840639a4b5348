import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { dump } from 'js-yaml';
import { Consumers, KafkaClient, KafkaConfig, Messages, Publisher } from '#messaging';
import { createLog } from '#observability';
import { SecretBox } from '#secrets';
import { DatabaseRestores, ServiceModule } from '#service';
import { GatewayModule } from './gateway.module.js';
import { openApiDocument } from './http/openapi-document.js';

/** Writes the OpenAPI document to a file. Creates the app without starting or connecting anything. */
process.env.DATABASE_URL ??= 'postgres://nowhere';
const log = createLog('openapi', 'silent');
const kafka = new KafkaClient(KafkaConfig.read({}), 'openapi', log);
const publisher = new Publisher(kafka);
const box = new SecretBox([]);
class Root {}
const messages = new Messages('gateway', kafka, publisher, log, box);
const consumers = new Consumers();
const restores = new DatabaseRestores(consumers, log);
const shared = ServiceModule.with({ log, box, kafka, publisher, messages, consumers, restores });
const root = { module: Root, imports: [shared, GatewayModule] };
const app = await NestFactory.create(root, new FastifyAdapter(), { logger: false, preview: true });
const [, , file = 'docs/openapi.yaml'] = process.argv;
await mkdir(dirname(file), { recursive: true });
await writeFile(file, dump(openApiDocument(app), { noRefs: true, lineWidth: 140 }));
process.exit(0);

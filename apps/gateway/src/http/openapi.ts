import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';
import { load } from 'js-yaml';
import { JSON_TYPE } from './list-body.js';
import { sendProblem } from './problem.js';

/** Redirects browsers from `/` to the documentation; programs get 404. */
export function showDocsToBrowsers(fastify: FastifyInstance): void {
  fastify.get('/', (request, reply) =>
    request.headers.accept?.includes('text/html')
      ? reply.redirect('/docs')
      : sendProblem(reply, { status: 404, detail: 'no such path: /' }),
  );
}

const DOCUMENT = join(dirname(findPackageJSON(import.meta.url) ?? ''), 'docs', 'openapi.yaml');

/**
 * Serves `docs/openapi.yaml` at `/openapi.json` and `/openapi.yaml`, and a page that shows it at `/docs`. None of them loads anything from the internet.
 * The document is not generated from the controllers here: their schemas are named after classes, and some classes have other names in a bundle.
 */
export function serveDocs(app: INestApplication, fastify: FastifyInstance): void {
  const text = readFileSync(DOCUMENT, 'utf8');
  let document: OpenAPIObject | undefined;
  const parsed = () => (document ??= load(text) as OpenAPIObject);
  SwaggerModule.setup('docs', app, parsed, { raw: false, customSiteTitle: 'Sluice API' });
  serveText(fastify, '/openapi.json', JSON_TYPE, () => JSON.stringify(parsed()));
  serveText(fastify, '/openapi.yaml', 'text/yaml; charset=utf-8', () => text);
}

/** Serves a text that is written once, at its first request: these paths need no key, and writing the JSON takes as long as many requests of accounts. */
export function serveText(fastify: FastifyInstance, path: string, type: string, write: () => string): void {
  let bytes: Buffer | undefined;
  fastify.get(path, (_, reply) => reply.type(type).send((bytes ??= Buffer.from(write()))));
}

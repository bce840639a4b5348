import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { INestApplication } from '@nestjs/common';
import { negotiate } from '@fastify/accept-negotiator';
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

const JSON_PATH = '/openapi.json';
const DOCUMENT = join(dirname(findPackageJSON(import.meta.url) ?? ''), 'docs', 'openapi.yaml');

/**
 * Serves `docs/openapi.yaml` at `/openapi.json` and `/openapi.yaml`, and a page that shows it at `/docs`. None of them loads anything from the internet.
 * The document is not generated from the controllers here: their schemas are named after classes, and some classes have other names in a bundle.
 */
export function serveDocs(app: INestApplication, fastify: FastifyInstance): void {
  const text = readFileSync(DOCUMENT, 'utf8');
  // the page loads the document from its own path, where it is compressed
  SwaggerModule.setup('docs', app, {} as OpenAPIObject, {
    ...{ raw: false, customSiteTitle: 'Sluice API', swaggerUrl: JSON_PATH },
    // no badge of a validator on the internet
    swaggerOptions: { validatorUrl: null },
  });
  serveText(fastify, JSON_PATH, JSON_TYPE, () => `${JSON.stringify(load(text))}\n`);
  serveText(fastify, '/openapi.yaml', 'text/yaml; charset=utf-8', () => text);
}

/**
 * Serves a text that is written and compressed once, at its first request: these paths need no key, and writing the JSON takes as long as many requests of
 * accounts. Caches may store it: it contains nothing of an account. They ask whether it has changed, because the next version of Sluice has another one.
 */
export function serveText(fastify: FastifyInstance, path: string, type: string, write: () => string): void {
  let written: { etag: string; bytes: Buffer; compressed: Buffer } | undefined;
  fastify.get(path, ({ headers }, reply) => {
    const { etag, bytes, compressed } = (written ??= representations(write()));
    reply.headers({ 'cache-control': 'no-cache', vary: 'accept-encoding', etag });
    const known = headers['if-none-match'];
    if (known === '*' || known?.includes(etag.slice('W/'.length))) return reply.status(304).send();
    reply.type(type);
    if (negotiate(headers['accept-encoding'] ?? '', ['gzip']) === null) return reply.send(bytes);
    return reply.header('content-encoding', 'gzip').send(compressed);
  });
}

/** The ETag is weak, because both have the same. */
function representations(text: string): { etag: string; bytes: Buffer; compressed: Buffer } {
  const bytes = Buffer.from(text);
  return { etag: `W/"${createHash('sha256').update(bytes).digest('base64url')}"`, bytes, compressed: gzipSync(bytes) };
}

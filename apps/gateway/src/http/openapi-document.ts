import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { problemResponse, REPLAYED, SELECTED_FIELDS } from './api-docs.js';

const DESCRIPTION = `Sluice routes events: sources, workflows and Kafka producers emit them; webhooks, sources and workflows receive them.

Every path accepts a trailing slash. A body with an unknown field is 400. In a query, unknown parameters are ignored, with two exceptions that are 400: on a POST with parameters, a name that seems to be mistyped; on a DELETE with parameters, every unknown name. Lists are newest first. Errors are RFC 9457 problems; \`error\` repeats \`detail\` for older clients. Every request can also return 417 if its header \`Expect\` is not \`100-continue\`, and 431 if its URL and headers are too large.
A POST that is repeated with the same \`Idempotency-Key\` within 24 hours returns the first response and has no further effect. While the first one is in progress, it is 409 with \`Retry-After\`. After a 400, a 429 or a 5xx, the key can be used again, also with a corrected request. A response that is returned again has the header \`Idempotency-Replayed: true\`.
If the operator limits the requests of an account per minute, every response has the headers \`RateLimit\`, \`RateLimit-Policy\`, \`RateLimit-Limit\`, \`RateLimit-Remaining\` and \`RateLimit-Reset\`.`;

/** The OpenAPI document of the controllers, for `npm run openapi`. */
export function openApiDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Sluice')
    .setDescription(DESCRIPTION)
    .setVersion('v1')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addServer('/', 'this server')
    .addBearerAuth({ type: 'http', scheme: 'bearer', bearerFormat: 'slk_…', description: 'The API key.' })
    .build();
  const document = SwaggerModule.createDocument(app, config);
  for (const item of Object.values(document.paths)) {
    const { get, post, put, patch, delete: remove } = item;
    // see checkQueries
    if (get) get.responses[400] ??= problemResponse(400);
    // a client can send a body to each of these routes, even to one that ignores it
    for (const operation of [post, put, patch, remove]) {
      for (const status of [400, 403, 413, 415]) if (operation) operation.responses[status] ??= problemResponse(status);
    }
    if (!post) continue;
    post.parameters ??= [];
    post.parameters.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description: 'Makes this request safe to repeat: for 24 hours a repeated request returns the first response.',
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    });
    for (const [status, response] of Object.entries(post.responses)) {
      if (status.startsWith('2') && response && 'headers' in response) response.headers = { ...response.headers, ...REPLAYED };
    }
  }
  closeBodies(document);
  return withoutUnusedSchemas(withNamedSchemas(withSharedProblems(withAnyJson(document))));
}

/** The classes of bodies have no fields but those that they name, and `include` and `exclude` (see RequestPipe). */
function closeBodies({ paths, components }: OpenAPIObject): void {
  const text = JSON.stringify(Object.values(paths).flatMap((item) => [item.post, item.put, item.patch].map((each) => each?.requestBody)));
  for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
    const schema = components!.schemas![name] as { properties: object };
    Object.assign(schema, { properties: { ...schema.properties, ...SELECTED_FIELDS }, additionalProperties: false });
  }
}

/** Removes `anyOf: [{}]` (see ANY_JSON): code generators would make a choice of one type from it. */
const withAnyJson = (document: OpenAPIObject): OpenAPIObject =>
  JSON.parse(JSON.stringify(document), (name, value: unknown) =>
    name === 'anyOf' && JSON.stringify(value) === '[{}]' ? undefined : value,
  ) as OpenAPIObject;

/** Defines each kind of problem once, instead of at every route. */
function withSharedProblems(document: OpenAPIObject): OpenAPIObject {
  const shared: NonNullable<OpenAPIObject['components']>['responses'] = {};
  for (const path of Object.values(document.paths)) {
    for (const operation of [path.get, path.put, path.post, path.patch, path.delete]) {
      for (const [status, response] of Object.entries(operation?.responses ?? {})) {
        if (!response || !('content' in response) || !response.content?.['application/problem+json']) continue;
        shared[`Problem${status}`] = response;
        operation!.responses[status] = { $ref: `#/components/responses/Problem${status}` };
      }
    }
  }
  document.components = { ...document.components, responses: shared };
  return document;
}

/**
 * Moves each schema that has a title to `components/schemas`, under that title: code generators name types after it. Without a name they make one up
 * from the operation, the status and the property, another one for each use.
 */
function withNamedSchemas(document: OpenAPIObject): OpenAPIObject {
  const named: Record<string, unknown> = {};
  const moved = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(moved);
    if (typeof part !== 'object' || part === null) return part;
    const copy = Object.fromEntries(Object.entries(part).map(([name, value]) => [name, moved(value)]));
    const { title, ...rest } = copy;
    // a property may have this name
    if (typeof title !== 'string') return copy;
    named[title] = rest;
    return { $ref: `#/components/schemas/${title}` };
  };
  const [paths, schemas] = [moved(document.paths) as OpenAPIObject['paths'], moved(document.components?.schemas) as Schemas];
  return { ...document, paths, components: { ...document.components, schemas: { ...schemas, ...named } as Schemas } };
}

type Schemas = NonNullable<OpenAPIObject['components']>['schemas'];

/** Nest also describes the payloads of Kafka handlers, which are not part of the REST API. */
function withoutUnusedSchemas(document: OpenAPIObject): OpenAPIObject {
  const schemas = document.components?.schemas ?? {};
  const used = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (used.has(name)) continue;
      used.add(name);
      follow(schemas[name]);
    }
  };
  follow([document.paths, document.components?.responses]);
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)));
  return { ...document, components: { ...document.components, schemas: kept } };
}

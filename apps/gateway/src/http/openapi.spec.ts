import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { fastify } from 'fastify';
import { load } from 'js-yaml';
import { serveText } from './openapi.js';

const document = load(readFileSync(new URL('../../../../docs/openapi.yaml', import.meta.url), 'utf8')) as any;
const operations: any[] = Object.values<object>(document.paths).flatMap((path) => Object.values(path));
const mediaOf = (content: object = {}): [type: string, media: any][] => Object.entries(content);

describe('docs/openapi.yaml', () => {
  it.each(operations.filter(({ requestBody }) => requestBody).map((operation) => [operation.operationId, operation]))(
    'has valid examples of the body of %s',
    (_, { requestBody }) => {
      const ajv = new Ajv2020({ strict: false });
      formats.default(ajv);
      ajv.addSchema({ $id: 'document', components: document.components });
      const local = (schema: object): object => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object;
      for (const [type, { schema, examples }] of mediaOf(requestBody.content)) {
        const { example } = schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema;
        const values = examples ? Object.values<any>(examples).map(({ value }) => value as unknown) : [example];
        expect({ type, values: values.length }).not.toEqual({ type, values: 0 });
        for (const value of values) {
          expect(value).toBeDefined();
          expect({ type, value, errors: ajv.validate(local(schema), value) ? [] : ajv.errors }).toEqual({ type, value, errors: [] });
        }
      }
    },
  );

  it('says that bodies have no other fields, except that they may select those of the response', () => {
    const names = operations.flatMap(({ requestBody }) =>
      mediaOf(requestBody?.content).map(([, { schema }]) => String(schema.$ref).split('/').at(-1)!),
    );
    const bodies = [...new Set(names)]
      .map((name) => [name, document.components.schemas[name]])
      .filter(([, body]) => body?.properties && !body.properties.specversion);
    expect(bodies.length).toBeGreaterThan(8);
    for (const [name, { additionalProperties, properties }] of bodies)
      expect([name, additionalProperties, properties]).toEqual([name, false, expect.objectContaining({ include: expect.anything() })]);
  });

  it('says that each operation returns 400 for a request that it cannot read', () => {
    expect(operations.filter(({ responses }) => !responses[400]).map(({ operationId }) => operationId)).toEqual([]);
  });

  it('declares the header of a response that is returned again, and those of a limit', () => {
    const posts = Object.values<any>(document.paths).flatMap(({ post }) => (post ? Object.entries<any>(post.responses) : []));
    const created = posts.filter(([status]) => status.startsWith('2')).map(([, { headers }]) => headers);
    expect(created.length).toBeGreaterThan(8);
    expect(created.filter((headers) => !headers['Idempotency-Replayed'])).toEqual([]);
    const { headers } = document.components.responses.Problem429;
    for (const name of ['Retry-After', 'RateLimit', 'RateLimit-Policy', 'RateLimit-Limit']) expect(headers).toHaveProperty([name]);
  });

  it('the OpenAPI document describes `url` as a required query parameter of createWebhook', () => {
    const { parameters } = operations.find(({ operationId }) => operationId === 'createWebhook');
    expect(parameters.find(({ name }: any) => name === 'url')).toMatchObject({ in: 'query', required: true });
  });

  it('names the schema of each response, and describes nothing that no operation uses', () => {
    const schemas = operations.flatMap(({ responses }) =>
      Object.values<any>(responses).flatMap(({ content }) => mediaOf(content).map(([type, { schema }]) => ({ type, schema }))),
    );
    expect(schemas.filter(({ type, schema }) => type === 'application/json' && !schema.$ref)).toEqual([]);
    const text = JSON.stringify(document);
    expect(Object.keys(document.components.schemas as object).filter((name) => !text.includes(`"#/components/schemas/${name}"`))).toEqual(
      [],
    );
  });

  const schemas = Object.entries<any>(document.components.schemas);

  it('gives a name to no schema of any value: openapi-generator refers to its class, and does not generate it', () => {
    const isOfAnyValue = ({ type, properties, $ref, oneOf, anyOf, allOf }: any): boolean =>
      allOf ? allOf.every(isOfAnyValue) : !(type || properties || $ref || oneOf || anyOf);
    expect(schemas.filter(([, schema]) => isOfAnyValue(schema)).map(([name]) => name)).toEqual([]);
  });

  it('describes the defaults of properties in words: openapi-typescript requires each property that has a default', () => {
    const withDefault = schemas.flatMap(([name, { properties = {} }]) =>
      Object.entries<any>(properties).flatMap(([property, value]) => (value.default === undefined ? [] : `${name}.${property}`)),
    );
    expect(withDefault).toEqual([]);
  });

  it('has no schema NewX beside a schema X: in Go, openapi-generator calls the constructor of X NewX', () => {
    const names = schemas.map(([name]) => name);
    expect(names.filter((name) => names.includes(`New${name}`))).toEqual([]);
  });
});

it('writes a text that anyone may request once, however often it is requested', async () => {
  let written = 0;
  const server = fastify();
  serveText(server, '/text', 'text/yaml; charset=utf-8', () => `n: ${++written}\n`);
  for (let n = 0; n < 3; n++) {
    const { headers, body } = await server.inject('/text');
    expect([headers['content-type'], body]).toEqual(['text/yaml; charset=utf-8', 'n: 1\n']);
  }
});

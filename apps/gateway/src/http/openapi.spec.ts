import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { load } from 'js-yaml';

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
        const { example, items } = schema.$ref ? document.components.schemas[schema.$ref.split('/').at(-1)] : schema;
        if (items) continue;
        const values = examples ? Object.values<any>(examples).map(({ value }) => value as unknown) : [example];
        expect({ type, values: values.length }).not.toEqual({ type, values: 0 });
        for (const value of values) {
          expect(value).toBeDefined();
          expect({ type, value, errors: ajv.validate(local(schema), value) ? [] : ajv.errors }).toEqual({ type, value, errors: [] });
        }
      }
    },
  );

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
});

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { load } from 'js-yaml';
import { readFileSync } from 'node:fs';
import type { ApiResponse } from './api.js';

export type Schema = Record<string, any>;

export interface Operation {
  method: string;
  /** The path with its parameters in braces. */
  path: string;
  operationId: string;
  parameters: { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: Schema }[];
  /** The schema of the JSON body; undefined if there is none. */
  body: Schema | undefined;
  /** The schemas of all bodies, by content type. */
  bodies: Record<string, Schema>;
  /** Whether there is a body that may be absent. */
  mayLackBody: boolean;
  responses: Record<string, { content?: Record<string, { schema: Schema }>; headers?: object; $ref?: string }>;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
/** The description of the API. */
export const document = load(readFileSync(new URL('../../docs/openapi.yaml', import.meta.url), 'utf8')) as Schema;

/** The operations in the description of the API. */
export const operations: Operation[] = Object.entries<Schema>(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => ({
    method: method.toUpperCase(),
    path,
    operationId: item[method].operationId,
    parameters: item[method].parameters ?? [],
    body: item[method].requestBody?.content['application/json'].schema,
    bodies: Object.fromEntries(
      Object.entries<Schema>(item[method].requestBody?.content ?? {}).map(([type, { schema }]): [string, Schema] => [type, schema]),
    ),
    mayLackBody: item[method].requestBody?.required === false,
    responses: item[method].responses,
  })),
);

/** The schema that a reference points to. */
export const resolved = <T extends Schema>(schema: T): T =>
  schema.$ref
    ? schema.$ref
        .split('/')
        .slice(1)
        .reduce((at: Schema, name: string) => at[name], document)
    : schema;

/** Our own resources have only the documented fields; `partly` if fields were selected: then any may be missing. */
function strict(schema: any, partly: boolean): any {
  if (Array.isArray(schema)) return schema.map((item) => strict(item, partly));
  if (schema === null || typeof schema !== 'object') return schema;
  const copy = Object.fromEntries(
    Object.entries<any>(schema)
      .filter(([name]) => name !== 'example')
      .map(([name, value]) => [name, name === '$ref' ? `${partly ? 'part' : 'whole'}${value}` : strict(value, partly)]),
  );
  if (copy.type === 'object' && copy.properties && copy.additionalProperties === undefined) copy.additionalProperties = false;
  if (partly && Array.isArray(copy.required) && !copy.properties?.data) delete copy.required;
  return copy;
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
for (const partly of [false, true]) ajv.addSchema({ $id: partly ? 'part' : 'whole', components: strict(document.components, partly) });
const validators = new Map<string, ValidateFunction>();

function validator(key: string, schema: Schema, partly: boolean): ValidateFunction {
  const known = validators.get(`${key} ${partly}`);
  if (known) return known;
  const compiled = ajv.compile(strict(schema, partly));
  validators.set(`${key} ${partly}`, compiled);
  return compiled;
}

const patterns = operations
  .map((operation) => ({
    operation,
    literals: operation.path.split('/').filter((segment) => !segment.startsWith('{')).length,
    pattern: new RegExp(`^${operation.path.replace(/[$.*]/g, '\\$&').replace(/\{\w+\}/g, '[^/]+')}/?$`),
  }))
  // `/registry/{key}` before `/{keyOrId}`
  .sort((a, b) => b.literals - a.literals);

/** How a response of the REST API differs from its description, or null. */
export function responseProblem(method: string, url: string, actual: ApiResponse, requestBody?: string | Buffer): string | null {
  const { pathname, searchParams } = new URL(url);
  if (!/^\/v1(\/|$)/.test(pathname)) return null;
  if (!actual.headers['x-request-id']) return 'there is no X-Request-Id';
  const path = pathname.replace(/%24errors/i, '$errors');
  const here = patterns.filter(({ pattern }) => pattern.test(path));
  if (here.length === 0) return [401, 404].includes(actual.status) ? null : `${actual.status} on a path that is not documented`;
  const asked = method === 'HEAD' ? 'GET' : method;
  const found = here.find(({ operation }) => operation.method === asked);
  if (!found) return [401, 405].includes(actual.status) ? null : `${actual.status} to a method that is not documented`;
  const { operation } = found;
  const response = operation.responses[actual.status];
  if (!response) return `${actual.status} is not documented`;
  const content = resolved(response).content;
  if (!content || method === 'HEAD') return actual.text === '' ? null : 'there must be no body';
  const [type = ''] = String(actual.headers['content-type']).split(';');
  const media = content[type];
  if (!media) return `the content type is ${type}, not ${Object.keys(content).join(' or ')}`;
  const partly = actual.status < 300 && (['include', 'exclude'].some((name) => searchParams.has(name)) || selectsInBody(requestBody));
  const validate = validator(`${operation.operationId} ${actual.status}`, media.schema, partly);
  return validate(actual.body) ? null : ajv.errorsText(validate.errors, { dataVar: 'body' });
}

const selectsInBody = (body: string | Buffer | undefined): boolean => /"(in|ex)clude"/.test(String(body));

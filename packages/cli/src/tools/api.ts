import { UnreachableError } from '@sluice/client';
import { dataOption } from '../session/option-values.js';
import { findAmong, isNoId } from '../resources/find.js';
import { KINDS } from '../resources/kinds.js';
import { CliError, EXIT, usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { itemText, printable } from '../session/output.js';
import type { Session } from '../session/session.js';
import { apiDocument } from './api-document.js';
import { headersOf } from './verify.js';

export interface ApiOptions {
  data?: string;
  header?: string[];
}

interface Operation {
  operationId: string;
  method: string;
  path: string;
  summary: string;
  parameters: { name: string; in: string; required?: boolean }[];
  hasBody: boolean;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** The operations that the server describes: they always fit its version. */
async function operationsOf(session: Session): Promise<Operation[]> {
  const { document } = await apiDocument(session);
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (!operation) return [];
      const { operationId, summary, parameters = [], requestBody } = operation;
      return [{ operationId, summary, parameters, method: method.toUpperCase(), path, hasBody: requestBody !== undefined }];
    }),
  );
}

/** `sluice api [OPERATION_ID] [name=value…] [-H 'name: value' …]`: calls any operation; without one, lists them. */
export async function api(
  session: Session,
  operationId: string | undefined,
  pairs: string[],
  { data, header = [] }: ApiOptions,
): Promise<void> {
  const operations = await operationsOf(session);
  if (operationId === undefined) {
    return session.list(operations, [
      ['OPERATION', (each) => each.operationId],
      ['', (each) => `${each.method} ${each.path}`],
      ['', (each) => each.summary],
    ]);
  }
  const operation = operations.find((each) => each.operationId === operationId);
  if (!operation) throw usageError(`there is no operation ${operationId}; sluice api lists them`);
  const values = new Map(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw usageError(`a parameter is written name=value, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  // wrong usage is reported before a name is looked up
  addressOf(operation, values);
  if (data !== undefined && !operation.hasBody) throw usageError(`${operationId} has no body: --data is for operations that have one`);
  const { path, query } = addressOf(operation, await withId(session, operation, values));
  const body = data === undefined ? undefined : JSON.stringify(await dataOption(data, () => session.stdin()));
  const response = await session.request(`${path}${query.size > 0 ? `?${query.toString()}` : ''}`, {
    method: operation.method,
    body,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...requestHeaders(header) },
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  if (isStream) return printStream(session, response.body!);
  const text = await response.text();
  if (text === '') return session.note(String(response.status));
  session.print(itemText(parseExactly(text), session.format === 'table' ? 'json' : session.format));
}

/** The parameters, with the id of a resource instead of its whole name. */
async function withId(session: Session, { path }: Operation, values: Map<string, string>): Promise<Map<string, string>> {
  const kind = KINDS.find(({ name }) => path.startsWith(`/v1/${name}s/{id}`));
  const text = values.get('id');
  if (kind === undefined || text === undefined || text.startsWith(kind.prefix)) return values;
  const { item } = await findAmong(session.sluice, [kind], text, { exactly: true });
  return new Map([...values, ['id', item.id]]);
}

async function printStream(session: Session, body: NonNullable<Response['body']>): Promise<void> {
  session.endWithReader();
  try {
    const parts = body.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>;
    for await (const part of parts) await session.printNext(printable(part));
  } catch (error) {
    throw new UnreachableError(
      `the stream has ended: ${((error as Error).cause as Error | undefined)?.message ?? (error as Error).message}`,
    );
  }
}

/** Headers of a request, which can contain ASCII only. */
export function requestHeaders(lines: string[]): Record<string, string> {
  const bad = lines.find((line) => !/^[\t\x20-\x7e]*$/.test(line));
  if (bad !== undefined) throw usageError(`a header must consist of ASCII characters, with others percent-encoded: ${bad}`);
  const headers = headersOf(lines);
  const badName = Object.keys(headers).find((name) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name));
  if (badName !== undefined) throw usageError(`${badName} is not the name of a header`);
  return headers;
}

/** The path and query of a call. A path parameter comes first where a query parameter has the same name. */
export function addressOf(
  { path, parameters, operationId }: Operation,
  values: Map<string, string>,
): { path: string; query: URLSearchParams } {
  const missing: string[] = [];
  const rest = new Map(values);
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name);
    if (value === undefined || isNoId(value)) missing.push(name);
    rest.delete(name);
    return encodeURIComponent(value ?? '');
  });
  const known = parameters.filter((each) => each.in === 'query').map(({ name }) => name);
  const unknown = [...rest.keys()].find((name) => !known.includes(name.replace(/^\?/, '')));
  if (unknown !== undefined)
    throw usageError(
      `${operationId} has no parameter ${unknown}; known are ${parameters
        .filter((each) => each.in !== 'header')
        .map(({ name }) => name)
        .join(', ')}`,
    );
  for (const { name, in: place, required } of parameters)
    if (place === 'query' && required && !rest.has(name) && !rest.has(`?${name}`)) missing.push(name);
  if (missing.length > 0) throw new CliError(`missing: ${missing.map((name) => `${name}=…`).join(' ')}`, EXIT.usage);
  return { path: filled, query: new URLSearchParams([...rest].map(([name, value]): [string, string] => [name.replace(/^\?/, ''), value])) };
}

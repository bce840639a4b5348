import { isStorable, longestDbKey } from '../wire/names.js';
import { isReplyHeader, mostReplyHeaders, replyHeaderLimits } from '../wire/reply-header.js';
import { resolveProp } from './describe-component.js';
import { emitted } from './emitted.js';
import type { Component } from './load-component.js';
import { dbEntryBytes, type RunState } from './run-state.js';

export type Members = Record<string, unknown>;

/** The `this` of one run: the same object for `run`, hooks and methods. */
export function componentContext(component: Component, run: RunState): Members {
  const self: Members = {};
  const methods = membersOf(component.methods);
  for (const [name, method] of Object.entries(methods)) self[name] = bound(method, self);
  for (const [name, definition] of Object.entries(membersOf(component.props))) {
    const prop = resolveProp(name, definition);
    self[name] = propValue(prop, Object.hasOwn(run.job.props, name) ? run.job.props[name] : undefined, run);
  }
  self.$emit = (event: unknown, meta?: unknown) => emit(event, meta, run);
  return self;
}

function propValue(prop: Members, configured: unknown, run: RunState): unknown {
  switch (prop.type) {
    case '$.service.db':
      return sourceDb(run);
    case '$.interface.http':
      return { endpoint: run.job.endpoint, respond: (reply: unknown) => respond(reply, prop, run) };
    case 'app':
      return app(prop, configured);
    default:
      // Like the catalog, null counts as absent
      return configured ?? copyOf(prop.default) ?? configured;
  }
}

/** The component's object is shared by all runs, so what one run changes in a default must not reach the next. */
function copyOf(value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch {
    // it contains functions
    return value;
  }
}

/** An app: its methods, bound to it, and the credentials that the user configured. */
function app(definition: Members, configured: unknown): Members {
  const self: Members = {};
  for (const [name, method] of Object.entries(membersOf(definition.methods))) self[name] = bound(method, self);
  self.$auth = membersOf(membersOf(configured).$auth);
  return self;
}

/** The app that defines a prop: the component's own prop of that app, with credentials, or the app without them. */
export function appOf(component: Component, definition: unknown, self: Members): Members {
  const name = Object.entries(membersOf(component.props)).find(([, prop]) => prop === definition)?.[0];
  return name === undefined ? app(membersOf(definition), undefined) : membersOf(self[name]);
}

function sourceDb(run: RunState): Members {
  return {
    get(key: unknown): unknown {
      const text = run.db.get(String(key));
      return text === undefined ? undefined : JSON.parse(text);
    },
    set(key: unknown, value: unknown): void {
      if (run.done) throw new Error('db.set after the run has ended');
      const name = String(key);
      if (!isStorable(name)) throw run.refuse(new RangeError('db.set: the key contains a NUL character or an unpaired surrogate'));
      const text = jsonOf(value, run);
      const keyBytes = Buffer.byteLength(name);
      // an earlier version stored longer ones, which can still be removed
      if (text !== undefined && keyBytes > longestDbKey)
        throw run.refuse(new RangeError(`db.set: the key has ${keyBytes} bytes; the limit is ${longestDbKey}`));
      const before = run.db.get(name);
      // runs that overlap may have made it larger together: it can still shrink
      if (text !== undefined && before === undefined && run.db.size >= run.limits.dbKeys)
        throw tooLarge(name, `${run.db.size + 1} keys`, run.limits.dbKeys, run);
      const bytes =
        run.dbBytes - (before === undefined ? 0 : dbEntryBytes(name, before)) + (text === undefined ? 0 : dbEntryBytes(name, text));
      if (bytes > run.limits.dbBytes && bytes > run.dbBytes) throw tooLarge(name, `${bytes} bytes`, run.limits.dbBytes, run);
      run.putChange(name, text ?? null);
      run.dbBytes = bytes;
      if (text === undefined) run.db.delete(name);
      else run.db.set(name, text);
    },
  };
}

function tooLarge(name: string, size: string, limit: number, run: RunState): Error {
  return run.refuse(new RangeError(`db.set: with "${name.slice(0, 100)}" the source's db would have ${size}; the limit is ${limit}`));
}

/** Undefined for undefined only: another value that JSON does not have, such as a function, must not delete a key. */
function jsonOf(value: unknown, run: RunState): string | undefined {
  if (value === undefined) return undefined;
  try {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`db.set: a value of type ${typeof value} is not JSON`);
    return text;
  } catch (error) {
    throw run.refuse(error as Error);
  }
}

function emit(event: unknown, meta: unknown, run: RunState): void {
  if (run.done) throw new Error('$emit after the run has ended');
  const { limits } = run;
  try {
    const { item, bytes } = emitted(event, meta, limits, run.received);
    // After its JSON was made: a getter or a `toJSON` of the component may emit, too
    if (run.emits >= limits.emits) throw new RangeError(`$emit: more than ${limits.emits} events in one run`);
    if (run.emittedBytes + bytes > limits.emittedBytes)
      throw new RangeError(`$emit: more than ${limits.emittedBytes} bytes of events, ids and summaries in one run`);
    run.emits++;
    run.emittedBytes += bytes;
    run.put(item, bytes);
  } catch (error) {
    throw run.refuse(error as Error);
  }
}

function respond(reply: unknown, prop: Members, run: RunState): void {
  if (!prop.customResponse) throw new Error('http.respond needs `customResponse: true` on the prop');
  if (run.responded || run.done) return;
  if (reply !== undefined && reply !== null && (typeof reply !== 'object' || Array.isArray(reply)))
    throw new TypeError('http.respond takes an object: { status, headers, body }');
  const { status = 200, headers, body, then } = membersOf(reply);
  if (typeof then === 'function') throw new TypeError('http.respond takes an object, not a promise: await it first');
  const code = Number(status);
  if (!Number.isInteger(code) || code < 200 || code > 599)
    throw new RangeError(`http.respond: the status ${String(status)} is not one of 200 to 599`);
  const isBinary = ArrayBuffer.isView(body) || body instanceof ArrayBuffer;
  const isJson = body !== undefined && body !== null && typeof body !== 'string' && !isBinary;
  const bytes = bodyBytes(body, isJson);
  if (bytes.length > run.limits.respondBytes)
    throw run.refuse(new RangeError(`http.respond: the body has ${bytes.length} bytes; the limit is ${run.limits.respondBytes}`));
  run.reply(code, replyHeaders(headers, isJson), bytes.toString('base64'));
}

function bodyBytes(body: unknown, isJson: boolean): Buffer {
  if (body === undefined || body === null) return Buffer.alloc(0);
  if (body instanceof ArrayBuffer) return Buffer.from(body);
  if (ArrayBuffer.isView(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return Buffer.from(isJson ? jsonBody(body) : (body as string));
}

/** @throws a TypeError for a stream, a Map, a Blob, and anything else that would be sent as its internals or as `{}`. An error is `{}`: its status counts */
function jsonBody(body: unknown): string {
  const { pipe, toJSON } = membersOf(body);
  const text = typeof pipe === 'function' ? undefined : JSON.stringify(body);
  if (text === undefined || (text === '{}' && !isPlain(body) && !isError(body) && typeof toJSON !== 'function'))
    throw new TypeError(`http.respond: ${nameOf(body)} cannot be sent as the body: give a text, a Buffer or data that JSON has`);
  return text;
}

/** Also of another realm. */
const isError = (value: unknown): boolean => Object.prototype.toString.call(value) === '[object Error]';

function isPlain(value: unknown): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

function nameOf(value: unknown): string {
  const { name } = (membersOf(value).constructor ?? {}) as { name?: unknown };
  return `a value of type ${typeof value === 'object' && typeof name === 'string' ? name.slice(0, 100) : typeof value}`;
}

/** The names in lower case. `headers`: an object, or `Headers`, a Map or pairs. */
function replyHeaders(headers: unknown, isJson: boolean): Record<string, string | string[]> {
  const named = new Map<string, string[]>();
  for (const [name, value] of headerPairs(headers)) {
    if (value === undefined || value === null) continue;
    const lower = String(name).toLowerCase();
    named.set(lower, [...(named.get(lower) ?? []), ...[value].flat().map(String)]);
  }
  if (isJson && !named.has('content-type')) named.set('content-type', ['application/json']);
  if (named.size > mostReplyHeaders) throw new TypeError(`http.respond: ${named.size} headers; the limit is ${mostReplyHeaders}`);
  return Object.fromEntries([...named].map(([name, values]) => [name, sendable(name, values)]));
}

const headerPairs = (headers: unknown): [unknown, unknown][] =>
  Symbol.iterator in membersOf(headers) ? [...(headers as Iterable<[unknown, unknown]>)] : Object.entries(membersOf(headers));

function sendable(name: string, values: string[]): string | string[] {
  // the values of this header cannot be joined by commas
  const value = name === 'set-cookie' && values.length > 1 ? values : values.join(', ');
  if (!isReplyHeader(name, value))
    throw new TypeError(`http.respond: the header "${name.slice(0, 100)}" cannot be sent: ${replyHeaderLimits}`);
  return value;
}

function bound(method: unknown, self: Members): unknown {
  return typeof method === 'function' ? method.bind(self) : method;
}

export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {};
}

import { type Dirent, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { CORE_SCHEMA, loadAll, mergeTag } from 'js-yaml';
import { usageError } from '../session/errors.js';
import { fileText, isFolder, readText } from '../session/files.js';

export const API_VERSION = 'sluice.dev/v1';
export const MANIFEST_KINDS = ['Component', 'Webhook', 'Source', 'Subscription'] as const;
/** The emitter of a subscription to all sources and workflows of the account: stands for the account's own id. */
export const ACCOUNT = 'account';
export type ManifestKind = (typeof MANIFEST_KINDS)[number];

type Values = Record<string, unknown>;

/** The greatest length of `metadata.name`. */
export const LONGEST_NAME = 100;

/** One resource as a file describes it. */
export interface Manifest {
  kind: ManifestKind;
  /** Unique among the manifests of a kind; a subscription needs none. */
  name: string;
  spec: Values;
  /** The folder that relative paths in the spec refer to. */
  folder: string;
  /** The file and the number of the document in it, for messages. */
  origin: string;
}

/** The type that a field of a `spec` must have: a phrase for messages, and the test. */
type Type = [phrase: string, test: (value: unknown) => boolean];

const TEXT: Type = ['a text', (value) => typeof value === 'string'];
const SWITCH: Type = ['true or false', (value) => typeof value === 'boolean'];
const OBJECT: Type = ['an object', (value) => isObject(value)];
const RATE: Type = ['an integer from 1 to 10000', (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 10_000];
const orNull = ([phrase, test]: Type): Type => [`${phrase}, or null`, (value) => value === null || test(value)];

/** The fields of each kind's `spec`. */
const FIELDS: Record<ManifestKind, Record<string, Type>> = {
  Component: { file: TEXT, code: TEXT },
  Webhook: { url: TEXT, name: orNull(TEXT), description: orNull(TEXT), active: SWITCH, rate_limit: orNull(RATE) },
  Source: { component: OBJECT, name: TEXT, props: orNull(OBJECT), active: SWITCH },
  Subscription: { emitter: TEXT, listener: TEXT, event_name: TEXT, auto: SWITCH },
};

/** The component of a source. */
const COMPONENT_FIELDS: Record<string, Type> = { file: TEXT, code: TEXT, url: TEXT, key: TEXT, id: TEXT, name: TEXT };
const METADATA_FIELDS = ['name'];

/** Reads the manifests in a file, in all .yaml, .yml and .json files of a folder, or from standard input (`-`). Throws a usage error for a bad one. */
export async function readManifests(path: string, stdin: () => Promise<string>): Promise<Manifest[]> {
  if (path === '-') return requireSome(parseManifests(await stdin(), 'standard input', process.cwd()), 'standard input');
  const entry = statSync(path, { throwIfNoEntry: false });
  if (!entry) throw usageError(`there is no file or folder ${path}`);
  const files = entry.isDirectory()
    ? readdirSync(path)
        .filter(hasManifests)
        .sort()
        .map((name) => join(path, name))
        .filter((file) => !isFolder(file))
    : [path];
  if (files.length === 0) throw usageError(`${path} contains no .yaml, .yml or .json files`);
  return requireSome(requireUnique(files.flatMap((file) => parseManifests(notEmpty(file), file, dirname(resolve(file))))), path);
}

/** Whether a file of this name is read. The lock that Emacs makes while a file is edited is a link to nothing. */
const hasManifests = (name: string): boolean => /\.(ya?ml|json)$/i.test(name) && !name.startsWith('.#');

/** The files with manifests in the subfolders of a folder, which are not read. */
export function unreadManifests(path: string): string[] {
  if (path === '-' || !isFolder(path)) return [];
  const folders = entriesOf(path).filter((entry) => entry.isDirectory() && !/^(\.|node_modules$)/.test(entry.name));
  return folders
    .map(({ name }) => join(path, name))
    .flatMap((folder) => {
      const files = entriesOf(folder).filter((entry) => entry.isFile() && hasManifests(entry.name));
      return [...files.map(({ name }) => join(folder, name)).filter(isOfSluice), ...unreadManifests(folder)];
    });
}

/** A folder that cannot be read may contain anything, such as the data of a running Sluice. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function isOfSluice(file: string): boolean {
  try {
    return readText(file).includes(API_VERSION);
  } catch {
    return false;
  }
}

/** The text of a file. An empty one is a mistake, such as a program that has failed to write it: `--prune` would delete what it described. */
function notEmpty(file: string): string {
  const text = readText(file);
  if (text.trim() === '') throw usageError(`${file} is empty`);
  return text;
}

/** No manifests are a mistake, such as a program before the pipe that has failed: to prune everything would be worse than to refuse. */
function requireSome(manifests: Manifest[], from: string): Manifest[] {
  if (manifests.length === 0) throw usageError(`${from} contains no manifests`);
  return manifests;
}

/** YAML 1.2 has no merge keys (`<<`), but people know them from other tools. */
const schema = CORE_SCHEMA.withTags([mergeTag]);

/** How many characters the aliases of a document may add to its text. The API accepts 64 KiB of props. */
const MOST_FROM_ALIASES = 1024 * 1024;

/** Throws for values that JSON does not have, and for aliases that stand for more than anyone writes. */
function requireJson(document: unknown, text: string): void {
  const sizes = new Map<object, number>();
  /** About the number of characters that the value would have in YAML without aliases, and never more. */
  const sizeOf = (value: unknown): number => {
    // JSON would have null instead, which removes a prop
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('infinities and .nan are not numbers in JSON');
    if (typeof value === 'string') return value.length + 1;
    if (typeof value !== 'object' || value === null) return 1;
    const known = sizes.get(value);
    if (known !== undefined) return known;
    // makes the whole size NaN if an alias inside the value stands for it
    sizes.set(value, NaN);
    const size = Object.entries(value).reduce((sum, [key, each]) => sum + (Array.isArray(value) ? 0 : key.length) + sizeOf(each), 1);
    sizes.set(value, size);
    return size;
  };
  const size = sizeOf(document);
  if (Number.isNaN(size)) throw new Error('an alias must not contain itself');
  if (size > text.length + MOST_FROM_ALIASES) throw new Error('the aliases of a document stand for more than 1 MiB');
}

/** The manifests in a text, one for each YAML document. */
export function parseManifests(text: string, file: string, folder: string): Manifest[] {
  let documents: unknown[];
  try {
    documents = loadAll(text, { schema });
    for (const document of documents) requireJson(document, text);
  } catch (error) {
    throw usageError(`${file}: ${(error as Error).message}`);
  }
  return requireUnique(
    documents.flatMap((document, n) =>
      document === null || document === undefined ? [] : [manifestOf(document, `${file}, document ${n + 1}`, folder)],
    ),
  );
}

function manifestOf(document: unknown, origin: string, folder: string): Manifest {
  const bad = (message: string): never => {
    throw usageError(`${origin}: ${message}`);
  };
  if (!isObject(document)) return bad('a manifest must be an object');
  const { apiVersion, kind, metadata = {}, spec, ...rest } = document;
  if (apiVersion !== API_VERSION) bad(`apiVersion must be ${API_VERSION}`);
  const known = MANIFEST_KINDS.find((each) => each === kind) ?? bad(`kind must be one of ${MANIFEST_KINDS.join(', ')}`);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) bad(`unknown field ${unknown}`);
  if (!isObject(metadata)) return bad('metadata must be an object');
  if (!isObject(spec)) return bad('spec must be an object');
  const requireKnown = (path: string, values: Values, names: string[]): void => {
    const other = Object.keys(values).find((field) => !names.includes(field));
    if (other !== undefined) bad(`unknown field ${path}.${other}; known are ${names.join(', ')}`);
  };
  requireKnown('metadata', metadata, METADATA_FIELDS);
  requireKnown('spec', spec, Object.keys(FIELDS[known]));
  const component = known === 'Component' ? spec : known === 'Source' && isObject(spec.component) ? spec.component : {};
  if (known === 'Source') requireKnown('spec.component', component, Object.keys(COMPONENT_FIELDS));
  const [chosen, second] = Object.keys(component);
  if (second !== undefined) bad(`${chosen} and ${second} exclude each other: a component has one of them`);
  if (spec.auto === true && spec.emitter !== undefined) bad('spec.auto and spec.emitter exclude each other');
  // a name that is made of long ends may be longer than a given one
  const made = known === 'Subscription' ? [spec.emitter, spec.event_name ?? '', spec.listener].join(' ') : undefined;
  const name = metadata.name ?? made;
  if (typeof name !== 'string' || name === '' || (name !== made && name.length > LONGEST_NAME))
    return bad(`metadata.name must be a text of 1 to ${LONGEST_NAME} characters`);
  const manifest = { kind: known, name, spec, folder, origin };
  // a value from elsewhere is checked when it has been read
  checkTypes(
    manifest,
    known === 'Webhook' ? Object.fromEntries(Object.entries(spec).filter(([, value]) => !isFromElsewhere(value))) : spec,
  );
  return manifest;
}

/** Throws a usage error if a field of the spec has another type than it must have: no value may mean something else than it says. */
export function checkTypes({ kind, origin }: Pick<Manifest, 'kind' | 'origin'>, spec: Values): void {
  const check = (path: string, values: Values, types: Record<string, Type>): void => {
    for (const [name, value] of Object.entries(values)) {
      const [phrase, test] = (Object.hasOwn(types, name) && types[name]) || ['', () => true];
      if (!test(value)) throw usageError(`${origin}: ${path}.${name} must be ${phrase}`);
    }
  };
  check('spec', spec, FIELDS[kind]);
  if (kind === 'Source' && isObject(spec.component)) check('spec.component', spec.component, COMPONENT_FIELDS);
}

function requireUnique(manifests: Manifest[]): Manifest[] {
  const seen = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const key = `${manifest.kind} ${manifest.name}`;
    const first = seen.get(key);
    if (first) throw usageError(`${manifest.origin}: there is another ${key} in ${first.origin}`);
    seen.set(key, manifest);
  }
  return manifests;
}

/** Replaces each `{valueFrom: …}` by the value that it stands for, at any depth. */
export function resolved(value: unknown, { folder, origin }: Manifest, env: Record<string, string | undefined>): unknown {
  const inside = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(inside);
    if (!isObject(part)) return part;
    if (isFromElsewhere(part)) return valueFrom(part.valueFrom, folder, env);
    return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, inside(each)]));
  };
  try {
    return inside(value);
  } catch (error) {
    throw usageError(`${origin}: ${(error as Error).message}`);
  }
}

/**
 * The text, or with `json: true` the JSON, in a variable (`{env: NAME}`) or a file (`{file: PATH}`); or the value in `{value: VALUE}` as it is written, also
 * if it looks like a `{valueFrom: …}`.
 */
function valueFrom({ json = false, ...fields }: Values, folder: string, env: Record<string, string | undefined>): unknown {
  const [[kind, from] = [], other] = Object.entries(fields);
  if (other !== undefined || !['env', 'file', 'value'].includes(kind ?? '') || (kind === 'value' && json !== false))
    throw usageError('valueFrom must have one of env, file and value, and json only with env or file');
  if (kind === 'value') return from;
  if (typeof from !== 'string') throw usageError(`valueFrom.${kind} must be a text`);
  if (typeof json !== 'boolean') throw usageError('valueFrom.json must be true or false');
  const path = relative(process.cwd(), resolve(folder, from));
  const [name, text] = kind === 'env' ? [`the environment variable ${from}`, env[from]] : [path, fileText(path)];
  if (!text) throw usageError(`${name} is ${kind === 'env' ? 'not set, or ' : ''}empty`);
  try {
    return json ? JSON.parse(text) : text;
  } catch {
    // the message of the error would show a part of the secret
    throw usageError(`${name} is not JSON, such as "a text" or ["a", "list"]`);
  }
}

/** Whether `resolved` replaces this value. */
export const isFromElsewhere = (value: unknown): value is { valueFrom: Values } =>
  isObject(value) && isObject(value.valueFrom) && Object.keys(value).length === 1;

export const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value);

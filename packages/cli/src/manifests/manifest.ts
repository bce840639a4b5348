import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { loadAll } from 'js-yaml';
import { usageError } from '../session/errors.js';

export const API_VERSION = 'sluice.dev/v1';
export const MANIFEST_KINDS = ['Component', 'Webhook', 'Source', 'Subscription'] as const;
/** The emitter of a subscription to all sources and workflows of the account: stands for the account's own id. */
export const ACCOUNT = 'account';
export type ManifestKind = (typeof MANIFEST_KINDS)[number];

type Values = Record<string, unknown>;

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

/** The fields of each kind's `spec`. */
const FIELDS: Record<ManifestKind, string[]> = {
  Component: ['file', 'code'],
  Webhook: ['url', 'name', 'description', 'active', 'rate_limit'],
  Source: ['component', 'name', 'props', 'active'],
  Subscription: ['emitter', 'listener', 'event_name', 'auto'],
};

/** Reads the manifests in a file, in all .yaml, .yml and .json files of a folder, or from standard input (`-`). Throws a usage error for a bad one. */
export async function readManifests(path: string, stdin: () => Promise<string>): Promise<Manifest[]> {
  if (path === '-') return parseManifests(await stdin(), 'standard input', process.cwd());
  const entry = statSync(path, { throwIfNoEntry: false });
  if (!entry) throw usageError(`there is no file or folder ${path}`);
  const files = entry.isDirectory()
    ? readdirSync(path)
        .filter((name) => /\.(ya?ml|json)$/.test(name))
        .sort()
        .map((name) => join(path, name))
    : [path];
  if (files.length === 0) throw usageError(`${path} contains no .yaml, .yml or .json files`);
  return requireUnique(files.flatMap((file) => parseManifests(readFileSync(file, 'utf8'), file, dirname(resolve(file)))));
}

/** The manifests in a text, one for each YAML document. */
export function parseManifests(text: string, file: string, folder: string): Manifest[] {
  let documents: unknown[];
  try {
    documents = loadAll(text);
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
  for (const name of Object.keys(spec))
    if (!FIELDS[known].includes(name)) bad(`unknown field spec.${name}; known are ${FIELDS[known].join(', ')}`);
  const name = metadata.name ?? (known === 'Subscription' ? [spec.emitter, spec.event_name ?? '', spec.listener].join(' ') : undefined);
  if (typeof name !== 'string' || name === '' || name.length > 100) return bad('metadata.name must be a text of 1 to 100 characters');
  return { kind: known, name, spec, folder, origin };
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

/** Replaces each `{valueFrom: {env: NAME}}` and `{valueFrom: {file: PATH}}` by the value, at any depth. */
export function resolved(value: unknown, { folder, origin }: Manifest, env: Record<string, string | undefined>): unknown {
  const bad = (message: string): never => {
    throw usageError(`${origin}: ${message}`);
  };
  const inside = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(inside);
    if (!isObject(part)) return part;
    if (!isObject(part.valueFrom) || Object.keys(part).length > 1)
      return Object.fromEntries(Object.entries(part).map(([name, each]) => [name, inside(each)]));
    const { env: variable, file } = part.valueFrom;
    if (typeof variable === 'string') return env[variable] ?? bad(`the environment variable ${variable} is not set`);
    if (typeof file !== 'string') return bad('valueFrom must have env or file');
    try {
      return readFileSync(resolve(folder, file), 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      return bad((error as Error).message);
    }
  };
  return inside(value);
}

export const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value);

import type { SluiceClient, Source, Webhook } from '@sluice/client';
import { CliError, EXIT, isNotFound, usageError } from '../session/errors.js';
import { type Kind, kindNamed, SOURCES, WEBHOOKS } from './kinds.js';

/** An item with its kind. */
export interface Found<T = { id: string }> {
  kind: Kind<T>;
  item: T;
}

/** An item whose kind does not matter, with the name that people know. */
export interface Named {
  id: string;
  name: string;
}

export interface FindOptions {
  /** Whether a beginning is not enough: in a script, once `orders` is deleted, it would stand for `orders-eu`. */
  exactly?: boolean;
  /** Whether the labels of an item count as its names. */
  byLabel?: boolean;
  /** A further remedy if nothing is found. */
  hint?: string;
}

const MOST_SUGGESTED = 3;

/** The source that the text refers to: by id, slug, name or external id, or by the beginning of one of them if only one source has it. */
export const findSource = async (sluice: SluiceClient, text: string, options?: FindOptions): Promise<Source> =>
  (await findAmong(sluice, [SOURCES], text, options)).item;

export const findWebhook = async (sluice: SluiceClient, text: string, options?: FindOptions): Promise<Webhook> =>
  (await findAmong(sluice, [WEBHOOKS], text, options)).item;

const EMITTERS = [SOURCES] as unknown as Kind<{ id: string }>[];
export const LISTENERS = [WEBHOOKS, SOURCES] as unknown as Kind<{ id: string }>[];

/** The id of a source or workflow. */
export const findEmitter = async (sluice: SluiceClient, text: string, options?: FindOptions): Promise<string> =>
  (await findUnlessId(sluice, EMITTERS, text, 'p_', options)).id;

/** A webhook, source or workflow. */
export const findListener = (sluice: SluiceClient, text: string, options?: FindOptions): Promise<Named> =>
  findUnlessId(sluice, LISTENERS, text, 'p_', options);

/** A source, workflow or account. */
export const findEmitterOrAccount = (sluice: SluiceClient, text: string, options?: FindOptions): Promise<Named> =>
  findUnlessId(sluice, EMITTERS, text, text.startsWith('u_') ? 'u_' : 'p_', options);

/** The API lists neither workflows nor accounts, so a text in the form of their ids is one, unless something has this name. */
async function findUnlessId(
  sluice: SluiceClient,
  kinds: Kind<{ id: string }>[],
  text: string,
  prefix: string,
  options?: FindOptions,
): Promise<Named> {
  if (isId(text, prefix) && named(await listed(sluice, kinds), (name) => name === text).length === 0) return { id: text, name: text };
  const { kind, item } = await findAmong(sluice, kinds, text, { ...options, hint: 'a workflow is given by its id, p_…' });
  return { id: item.id, name: kind.names(item)[0] ?? item.id };
}

/** Throws if nothing or more than one item matches. */
export async function findAmong<T extends { id: string }>(
  sluice: SluiceClient,
  kinds: Kind<T>[],
  text: string,
  { exactly = false, byLabel = false, hint }: FindOptions = {},
): Promise<Found<T>> {
  const isOfPrefix = ({ prefix }: Kind<T>): boolean => text.startsWith(prefix);
  const isOwn = ({ isListPublic = false }: Kind<T>): boolean => !isListPublic;
  const kindNames = kinds.length > 2 ? 'resource' : kinds.map(({ name }) => name).join(' or ');
  // every name begins with an empty text
  if (text === '') throw usageError(`the name of a ${kindNames} is required`);
  let candidates: Found<T>[] = [];
  // in a large account, the lists have many pages
  const identified = kinds.filter(({ prefix }) => isId(text, prefix));
  let matches = await fetched(sluice, identified, text);
  // what looks like an id of one kind may be the name of another one
  const others = kinds.filter((kind) => !isOfPrefix(kind));
  for (const group of [kinds.filter(isOfPrefix), others.filter(isOwn), others.filter((kind) => !isOwn(kind))]) {
    if (matches.length > 0) break;
    const items = await listed(sluice, group);
    candidates = candidates.concat(items);
    matches = named(items, (name) => name === text, byLabel);
    const unlisted = group.filter((kind) => kind.isListPublic && !identified.includes(kind));
    if (matches.length === 0) matches = await fetched(sluice, unlisted, text);
  }
  const beginning = matches.length === 0 ? named(candidates, (name) => name.startsWith(text), byLabel) : [];
  const own = beginning.filter(({ kind }) => isOwn(kind));
  const begin = own.length > 0 ? own : beginning;
  if (!exactly) matches = [...matches, ...begin];
  const [first] = matches;
  const names = begin.map(({ kind, item }) => kind.names(item)[0] ?? item.id);
  const where = [whereToLook(kinds, text), hint].filter(Boolean).join('; ');
  const remedy =
    names.length === 0
      ? where
      : names.length > MOST_SUGGESTED
        ? `${names.length} names begin with it: give the whole name`
        : `if you mean ${names.join(' or ')}, give its whole name`;
  if (!first) throw new CliError(`no ${kindNames} is called ${text}; ${remedy}`, EXIT.notFound);
  if (matches.length > 1)
    throw ambiguous(
      kindNames,
      text,
      matches.map(({ kind, item }) => ({ id: item.id, name: kind.names(item)[0] ?? kind.name })),
    );
  return first;
}

export const ambiguous = (kind: string, text: string, items: Named[]): CliError =>
  usageError(`the ${kind} ${text} is ambiguous: ${items.map(({ id, name }) => `${name} (${id})`).join(', ')}; give its id`);

/** Whether no id or key can be this text: in the path of a request, it would lead to another resource. */
export const isNoId = (text: string): boolean => ['', '.', '..'].includes(text);

/** Whether the text has the form of an id with this prefix. It may be a name, too. */
const isId = (text: string, prefix: string): boolean => text.startsWith(prefix) && /^[A-Za-z0-9]{1,64}$/.test(text.slice(prefix.length));

async function listed<T>(sluice: SluiceClient, kinds: Kind<T>[]): Promise<Found<T>[]> {
  const items: Found<T>[] = [];
  for (const kind of kinds) for await (const item of kind.list(sluice)) items.push({ kind, item });
  return items;
}

/** Those of which the id, a name or, if wanted, a label passes the test. */
const named = <T extends { id: string }>(items: Found<T>[], test: (name: string) => boolean, byLabel = false): Found<T>[] =>
  items.filter(({ kind, item }) =>
    [item.id, ...kind.names(item), ...((byLabel && kind.labels?.(item)) || [])].some((name) => typeof name === 'string' && test(name)),
  );

/** The items that the API returns for this id, or key of a component. */
async function fetched<T>(sluice: SluiceClient, kinds: Kind<T>[], text: string): Promise<Found<T>[]> {
  const found: Found<T>[] = [];
  for (const kind of kinds) {
    if (!kind.get || isNoId(text)) continue;
    try {
      found.push({ kind, item: (await kind.get(sluice, text)).data as T });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return found;
}

function whereToLook(kinds: { name: string }[], text: string): string {
  if (kinds.length > 2 && text.startsWith('p_')) return `if it is a workflow, \`sluice events ${text}\` reads its events`;
  if (kinds.length > 2 && kindNamed(text)) return `give its name, too: ${text} NAME`;
  return kinds.length > 2
    ? 'sluice list KIND lists them'
    : kinds
        .map(({ name }) => `sluice list ${name}s`)
        .join(' and ')
        .concat(kinds.length > 1 ? ' list them' : ' lists them');
}

import { type SluiceClient, SluiceError, type Source, type Webhook } from '@sluice/client';
import { CliError, EXIT, usageError } from '../session/errors.js';
import { type Kind, kindNamed, KINDS, SOURCES, WEBHOOKS } from './kinds.js';

/** An item with its kind. */
export interface Found<T = { id: string }> {
  kind: Kind<T>;
  item: T;
}

/** The source that the text refers to: by id, slug, name or external id, or by the beginning of one of them if only one source has it. */
export const findSource = async (sluice: SluiceClient, text: string): Promise<Source> => (await findAmong(sluice, [SOURCES], text)).item;

export const findWebhook = async (sluice: SluiceClient, text: string): Promise<Webhook> => (await findAmong(sluice, [WEBHOOKS], text)).item;

/** Workflows are not listed by the API, so only their ids are known. */
const WORKFLOW_ID = /^p_\w+$/;

/** The id of a source or workflow. */
export async function findEmitter(sluice: SluiceClient, text: string): Promise<string> {
  return WORKFLOW_ID.test(text) ? text : (await findSource(sluice, text)).id;
}

const LISTENERS = [WEBHOOKS, SOURCES] as unknown as Kind<{ id: string }>[];

/** The id of a webhook, source or workflow. */
export async function findListener(sluice: SluiceClient, text: string): Promise<string> {
  return WORKFLOW_ID.test(text) ? text : (await findAmong(sluice, LISTENERS, text)).item.id;
}

/** Searches all kinds. */
export const findAny = (sluice: SluiceClient, text: string): Promise<Found> => findAmong(sluice, KINDS, text);

/** Throws if nothing or more than one item matches. */
export async function findAmong<T extends { id: string }>(sluice: SluiceClient, kinds: Kind<T>[], text: string): Promise<Found<T>> {
  const byPrefix = kinds.filter(({ prefix }) => text.startsWith(prefix));
  const searched = byPrefix.length > 0 ? byPrefix : kinds;
  const candidates: Found<T>[] = [];
  for (const kind of searched) {
    for await (const item of kind.list(sluice)) candidates.push({ kind, item });
  }
  const named = (test: (name: string) => boolean): Found<T>[] =>
    candidates.filter(({ kind, item }) => [item.id, ...kind.names(item)].some((name) => typeof name === 'string' && test(name)));
  const listed = named((name) => name === text);
  const exact = listed.length > 0 ? listed : await unlisted(sluice, searched, text);
  const matches = exact.length > 0 ? exact : named((name) => name.startsWith(text));
  const [first] = matches;
  const kindNames = kinds.length > 2 ? 'resource' : kinds.map(({ name }) => name).join(' or ');
  if (!first) throw new CliError(`no ${kindNames} is called ${text}; ${whereToLook(kinds, text)}`, EXIT.notFound);
  if (matches.length > 1)
    throw usageError(
      `${text} is ambiguous: ${matches.map(({ kind, item }) => `${kind.names(item)[0] ?? kind.name} (${item.id})`).join(', ')}`,
    );
  return first;
}

/** The items with this id or key that no list contains. */
async function unlisted<T>(sluice: SluiceClient, kinds: Kind<T>[], text: string): Promise<Found<T>[]> {
  const found: Found<T>[] = [];
  for (const kind of kinds) {
    if (!kind.isListPartial || !kind.get) continue;
    try {
      found.push({ kind, item: (await kind.get(sluice, text)).data as T });
    } catch (error) {
      if (!(error instanceof SluiceError && error.status === 404)) throw error;
    }
  }
  return found;
}

function whereToLook(kinds: { name: string }[], text: string): string {
  if (kinds.length > 2 && kindNamed(text)) return `give its name, too: ${text} NAME`;
  return kinds.length > 2
    ? 'sluice list KIND lists them'
    : kinds
        .map(({ name }) => `sluice list ${name}s`)
        .join(' and ')
        .concat(kinds.length > 1 ? ' list them' : ' lists them');
}

import type { Component } from '@sluice/client';
import { usageError } from '../session/errors.js';
import type { Session } from '../session/session.js';
import { findAmong, type FindOptions, type Found } from './find.js';
import { COMPONENTS, type Kind, kindNamed, KINDS } from './kinds.js';

const DELETABLE = KINDS.filter((kind) => kind.delete !== undefined);
const SWITCHABLE = KINDS.filter((kind) => kind.setActive !== undefined);

const kindNames = (): string => KINDS.map(({ name }) => `${name}s`).join(', ');

function requireKind(word: string): Kind<{ id: string }> {
  const kind = kindNamed(word);
  if (kind) return kind;
  throw usageError(
    /^workflows?$/.test(word)
      ? 'workflows are registered over Kafka and cannot be listed; `sluice events p_…` reads the events of one'
      : `there is no kind ${word}; known are ${kindNames()}`,
  );
}

/** `sluice list [KIND]` */
export async function list(session: Session, word = 'sources', { search }: { search?: string }): Promise<void> {
  const kind = requireKind(word);
  const items: { id: string }[] = [];
  for await (const item of kind.list(session.sluice)) {
    const texts = [item.id, ...kind.names(item), ...(kind.labels?.(item) ?? [])];
    if (search === undefined || texts.some((name) => name?.toLowerCase().includes(search.toLowerCase()))) items.push(item);
  }
  const { columns, tableColumns } = kind;
  session.list(items, tableColumns && session.format === 'table' ? await tableColumns(session.sluice) : columns);
  if (items.length === 0)
    session.note(
      search === undefined
        ? `no ${kind.name}s yet${kind.howToCreate ? `: ${kind.howToCreate}` : ''}`
        : `no ${kind.name} has ${search} in its name`,
    );
}

/** The item of `[KIND] NAME`. @param kinds those that a name without a kind may have */
async function found(session: Session, words: string[], kinds: Kind<{ id: string }>[], options?: FindOptions): Promise<Found> {
  const [first = '', second] = words;
  if (words.length > 2) throw usageError('expected one name, or a kind and a name');
  return second === undefined
    ? findAmong(session.sluice, kinds, first, options)
    : findAmong(session.sluice, [requireKind(first)], second, options);
}

/** `sluice get [KIND] NAME` */
export async function get(session: Session, words: string[]): Promise<void> {
  const { kind, item } = await found(session, words, KINDS, { byLabel: true });
  const shown = kind.get ? (await kind.get(session.sluice, item.id)).data : item;
  if (session.format !== 'table' || kind.name !== COMPONENTS.name) return session.item(shown);
  // a hundred lines before its props
  const { code: _, ...rest } = shown as Component;
  session.item(rest);
  session.note('its code is in -o json');
}

/** `sluice delete [KIND] NAME` */
export async function remove(session: Session, words: string[], { yes }: { yes?: boolean }): Promise<void> {
  const { kind, item } = await found(session, words, DELETABLE, { exactly: yes || !session.isInteractive });
  if (!kind.delete) throw usageError(`a ${kind.name} cannot be deleted`);
  const name = `${kind.name} ${kind.names(item)[0] ?? ''} (${item.id})`.replace('  ', ' ');
  await session.confirm(`Delete the ${name}?`, yes);
  await kind.delete(session.sluice, item);
  session.note(`deleted ${name}`);
  if (session.format !== 'table') session.item({ id: item.id, kind: kind.name, deleted: true });
}

/** `sluice on [KIND] NAME` */
export const switchOn = (session: Session, words: string[]): Promise<void> => setActive(session, words, true);

/** `sluice off [KIND] NAME` */
export const switchOff = (session: Session, words: string[]): Promise<void> => setActive(session, words, false);

async function setActive(session: Session, words: string[], active: boolean): Promise<void> {
  const { kind, item } = await found(session, words, SWITCHABLE, { exactly: !active && !session.isInteractive });
  if (!kind.setActive) throw usageError(`a ${kind.name} cannot be switched ${active ? 'on' : 'off'}`);
  const isExact = [item.id, ...kind.names(item)].includes(words.at(-1));
  if (!active && !isExact) await session.confirm(`Switch the ${kind.name} ${kind.names(item)[0] ?? item.id} off?`, false);
  const { data } = await kind.setActive(session.sluice, item.id, active);
  session.note(`${kind.name} ${kind.names(item)[0] ?? item.id} is ${active ? 'on' : 'off'}`);
  if (session.format !== 'table') session.item(data);
}

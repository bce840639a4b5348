import type { Source, Webhook } from '@sluice/client';
import { ACCOUNT, LONGEST_NAME } from './manifest.js';
import { ownerOf } from './owner.js';

/** By the id of each webhook, the name of its manifest in an export; see `manifestNames`. */
export const webhookNames = (webhooks: Webhook[]): Map<string, string> => manifestNames(webhooks, ({ name, id }) => name || id);

/** By the id of each source, the name of its manifest in an export; see `manifestNames`. */
export const sourceNames = (sources: Source[]): Map<string, string> => manifestNames(sources, ({ name_slug }) => name_slug);

/** The names of the manifests of an export, by id. */
export interface ManifestNames {
  webhooks: ReadonlyMap<string, string>;
  sources: ReadonlyMap<string, string>;
}

/** An end of a subscription, as a manifest names it. */
export function endNamed(id: string, accountId: string, { webhooks, sources }: ManifestNames): string {
  if (id === accountId) return ACCOUNT;
  if (webhooks.has(id)) return `webhook/${webhooks.get(id)}`;
  return sources.has(id) ? `source/${sources.get(id)}` : id;
}

/**
 * An item that `apply` created keeps its name. Each other one gets the beginning of its text, with a number if the name is taken: a number stays the
 * same when newer items are created.
 *
 * @param items newest first, as the API lists them
 */
function manifestNames<T extends Source | Webhook>(items: T[], textOf: (item: T) => string): Map<string, string> {
  const names = new Map<string, string>();
  const distinct = new DistinctNames();
  const add = ({ id }: T, wanted: string): void => {
    const name = (end: string): string => `${wanted.slice(0, LONGEST_NAME - end.length).toWellFormed()}${end}`;
    names.set(id, distinct.add(name, '-'));
  };
  const ordered = items.toReversed();
  for (const item of ordered) if (ownerOf(item)?.name) add(item, ownerOf(item)!.name);
  for (const item of ordered) if (!names.has(item.id)) add(item, textOf(item));
  return names;
}

/** Names that differ from each other. */
export class DistinctNames {
  private readonly taken = new Set<string>();
  /** The number to try next, by the name without a number. */
  private readonly numbers = new Map<string, number>();

  /** @param name the name with an end, which is empty or, if this name is taken, a number */
  add(name: (end: string) => string, separator: string): string {
    const wanted = name('');
    let [free, number] = [wanted, this.numbers.get(wanted) ?? 2];
    while (this.taken.has(free)) free = name(`${separator}${number++}`);
    this.taken.add(free);
    this.numbers.set(wanted, number);
    return free;
  }
}

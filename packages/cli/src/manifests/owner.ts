const OWNER = 'sluice.dev/';

/** The set of manifests that do not belong to another one. */
export const DEFAULT_SET = 'default';

/** The manifest that `apply` has created a source or webhook from. */
export interface Owner {
  /** The set of manifests: only what belongs to the set of an `apply` is pruned by it. */
  set: string;
  /** The name of the manifest. */
  name: string;
}

/** The external id of what `apply` creates: `sluice.dev/SET/NAME`, or `sluice.dev/NAME` in the default set. */
export const externalIdOf = ({ set, name }: Owner): string =>
  OWNER + (set === DEFAULT_SET && !name.includes('/') ? name : `${set}/${name}`);

/** The manifest that `apply` has created an item from; undefined if it was created in another way. */
export function ownerOf({ external_id = '' }: { external_id?: string }): Owner | undefined {
  if (!external_id.startsWith(OWNER)) return undefined;
  const [, set = DEFAULT_SET, name = ''] = /^(?:([^/]+)\/)?(.+)$/s.exec(external_id.slice(OWNER.length)) ?? [];
  return { set, name };
}

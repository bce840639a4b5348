import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { PatchSourceBody, SluiceClient, Source } from '@sluice/client';
import { SluiceError } from '@sluice/client';
import { endpointOf, SOURCES } from '../resources/kinds.js';
import { findSource, isNoId } from '../resources/find.js';
import { isNotFound, usageError } from '../session/errors.js';
import { isFile } from '../session/files.js';
import type { Session } from '../session/session.js';
import { nameOf, type Place, placesIn, readComponent } from './component-file.js';
import { sendProps } from './props.js';
import { showWarnings } from './warnings.js';

const AGAIN_MS = 1000;

export interface DeployOptions {
  name?: string;
  prop?: string[];
}

/** A component, as a body names it, and the name of its sources. */
interface Choice {
  component: Pick<PatchSourceBody, 'component_code' | 'component_url' | 'key'>;
  name: string;
  /** The types of the props, where they are known. */
  types: Record<string, string>;
  /** Of code, but not of a registered component: its author is someone else. */
  placeOf?: Place;
}

/** The component that `FILE|KEY|URL` refers to. */
export async function chosenComponent(sluice: SluiceClient, target: string): Promise<Choice> {
  if (/^https?:\/\//i.test(target)) {
    if (!URL.canParse(target)) throw usageError(`${target} is not a URL`);
    return { component: { component_url: target }, name: nameOf(new URL(target).pathname), types: {}, placeOf: placesIn(target) };
  }
  if (isFile(target) || /\.[cm]?[jt]s$/.test(target)) {
    const { code, placeOf } = await readComponent(target);
    return { component: { component_code: code }, name: nameOf(target), types: {}, placeOf };
  }
  const file = ['.mjs', '.js', '.ts'].map((ending) => target + ending).find(isFile);
  const remedy = file === undefined ? 'sluice list components lists these' : `did you mean ${file}?`;
  const unknown = usageError(`${target} is not a file, a URL or the key of a registered component; ${remedy}`);
  if (isNoId(target)) throw unknown;
  const { data } = await sluice.getRegisteredComponent({ path: { key: target } }).catch((error: unknown) => {
    throw isNotFound(error) ? unknown : error;
  });
  const types = Object.fromEntries(data.configurable_props.map(({ name, type }) => [name, type]));
  return { component: { key: target }, name: target, types };
}

/** The source with this name, if there is one. Throws a usage error if there are several. */
export async function sourceNamed(sluice: SluiceClient, name: string): Promise<Source | undefined> {
  for (let isAgain = false; ; isAgain = true) {
    const found: Source[] = [];
    for await (const source of SOURCES.list(sluice)) if (source.name === name || source.name_slug === name) found.push(source);
    if (found.length < 2) return found[0];
    if (isAgain)
      throw usageError(
        `several sources are called ${name}: ${found.map(({ name_slug, id }) => `${name_slug} (${id})`).join(', ')}; sluice update ID --code changes one of them`,
      );
    // commands that have created it at the same time keep one
    await sleep(AGAIN_MS);
  }
}

export interface Deployed {
  source: Source;
  outcome: 'created' | 'updated' | 'unchanged';
}

/**
 * Creates the source, or changes the one that has this name: deploying the same again changes nothing. Props that are not given keep their values.
 */
export async function deployed(sluice: SluiceClient, name: string, body: PatchSourceBody): Promise<Deployed> {
  const before = await sourceNamed(sluice, name);
  return before ? changed(sluice, before, body) : created(sluice, name, body);
}

/** Creates a source with a name that none had, and keeps the first one if other commands have done so at the same time. */
export async function created(sluice: SluiceClient, name: string, body: PatchSourceBody): Promise<Deployed> {
  const { data: source } = await sluice.createSource({ body: { ...(body as object), name } });
  // the slug of the first one has no number, or a lower one
  if (!/-\d+$/.test(source.name_slug)) return { source, outcome: 'created' };
  let first = source;
  for await (const each of SOURCES.list(sluice)) if (each.name === name && isBefore(each.name_slug, first.name_slug)) first = each;
  if (first.id === source.id) return { source, outcome: 'created' };
  await sluice.deleteSource({ path: { id: source.id } });
  return changed(sluice, first, body);
}

/** Compares two slugs of one name: `a`, `a-1`, …, `a-10`. */
const isBefore = (slug: string, other: string): boolean => slug.localeCompare(other, 'en', { numeric: true }) < 0;

/** @param before as it was read */
export async function changed(sluice: SluiceClient, before: Source, body: PatchSourceBody): Promise<Deployed> {
  const { data: source } = await patched(sluice, before, body);
  return { source, outcome: isSame(before, source) ? 'unchanged' : 'updated' };
}

/** Changes a source. The error for a value that it has from another component names the source and the remedy. */
async function patched(sluice: SluiceClient, before: Source, body: PatchSourceBody): Promise<{ data: Source }> {
  try {
    return await sluice.patchSource({ path: { id: before.id }, body });
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const kept = [...error.message.matchAll(/configured_props\.([\w$]+) is not a prop/g)]
      .map(([, name = '']) => name)
      .filter((name) => Object.hasOwn(before.configured_props, name) && !Object.hasOwn(body.configured_props ?? {}, name));
    if (kept.length > 0)
      error.message += `; the source ${before.name_slug} has ${kept.join(', ')} from its present component: remove with ${kept.map((name) => `-p ${name}=null`).join(' ')}, or deploy with another --name`;
    throw error;
  }
}

/** The owner is omitted in lists. */
export const isSame = ({ user_id: _a, ...before }: Source, { user_id: _b, ...after }: Source): boolean => isDeepStrictEqual(before, after);

/** `sluice deploy FILE|KEY|URL` */
export async function deploy(session: Session, target: string, { name, prop }: DeployOptions): Promise<void> {
  const choice = await chosenComponent(session.sluice, target);
  const result = await sendProps(prop, choice.types, (configured_props) =>
    deployed(session.sluice, name ?? choice.name, { ...choice.component, configured_props }),
  );
  await report(session, result);
  if (choice.placeOf) await showWarnings(session, result.source.component_id, choice.placeOf);
}

export interface UpdateOptions extends DeployOptions {
  code?: string;
  activate?: boolean;
  deactivate?: boolean;
}

/** `sluice update SOURCE` */
export async function update(session: Session, text: string, { code, name, prop, activate, deactivate }: UpdateOptions): Promise<void> {
  if (activate && deactivate) throw usageError('--activate and --deactivate exclude each other');
  const before = await findSource(session.sluice, text, { exactly: !session.isInteractive });
  const choice = code === undefined ? undefined : await chosenComponent(session.sluice, code);
  const { data: component } = await session.sluice.getComponent({ path: { keyOrId: before.component_id }, query: { exclude: 'code' } });
  const types = Object.fromEntries(component.configurable_props.map((each) => [each.name, each.type]));
  const body: PatchSourceBody = { ...choice?.component, name, active: activate ? true : deactivate ? false : undefined };
  const result = await sendProps(prop, choice ? choice.types : types, (configured_props) =>
    changed(session.sluice, before, { ...body, configured_props }),
  );
  await report(session, result);
  if (choice?.placeOf) await showWarnings(session, result.source.component_id, choice.placeOf);
}

/** A remark for a source that does not run. */
export const offNote = ({ name_slug }: Pick<Source, 'name_slug'>): string => `${name_slug} is off: sluice on ${name_slug}`;

async function report(session: Session, { source, outcome }: Deployed): Promise<void> {
  if (!source.active) session.warn(offNote(source));
  if (session.format !== 'table') return session.item(source);
  session.print(`${outcome} ${source.name_slug} (${source.id})\n`);
  const endpoint = await endpointOf(session.sluice, source);
  if (endpoint) session.print(`endpoint: ${endpoint}\n`);
}

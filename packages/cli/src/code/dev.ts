import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endpointOf } from '../resources/kinds.js';
import { explain, usageError } from '../session/errors.js';
import type { Session } from '../session/session.js';
import { eventText } from '../streams/event-line.js';
import { connectionNotes } from '../streams/read-events.js';
import { type ComponentFile, nameOf, readComponent } from './component-file.js';
import { deployed, type DeployOptions } from './deploy.js';
import { sendProps } from './props.js';

/** Editors write a file in several steps. */
const SETTLE_MS = 100;
/** All that a source emits. */
const STREAMS = ['*', '$logs', '$errors'];

/**
 * `sluice dev FILE`: deploys the file to the source of this name, deploys it again whenever it or a file that it imports changes, and shows events,
 * logs and errors with the lines of the file.
 */
export async function dev(session: Session, file: string, { name = nameOf(file), prop }: DeployOptions): Promise<void> {
  if (session.format !== 'table') throw usageError('sluice dev is for people: it has no other output formats');
  let component: ComponentFile = await readComponent(file);
  const deployNow = () =>
    sendProps(prop, {}, (configured_props) => deployed(session.sluice, name, { component_code: component.code, configured_props }));
  const { source, outcome } = await deployNow();
  session.note(`${outcome} ${source.name_slug} (${source.id}); watching ${component.files.length} file(s), Ctrl-C ends`);
  const endpoint = endpointOf(source.configured_props);
  if (endpoint) session.note(`endpoint: ${endpoint}`);

  const show = async (eventName: string): Promise<void> => {
    const events = session.sluice.events(source.id, { eventName, onState: connectionNotes(session, ` (${eventName})`) });
    for await (const event of events) session.print(component.located(eventText(event, 'table')));
  };
  const redeploy = async (): Promise<void> => {
    try {
      component = await readComponent(file);
      const { outcome: again } = await deployNow();
      if (again !== 'unchanged') session.note(again);
    } catch (error) {
      session.warn(component.located(explain(error)));
    }
  };
  const watching = async (): Promise<void> => {
    for (;;) {
      await changeOf(component.files);
      await redeploy();
    }
  };
  await Promise.all([...STREAMS.map(show), watching()]);
}

/** Resolves when one of the files has changed. Watches their folders, because editors replace files. */
async function changeOf(files: string[]): Promise<void> {
  const watchers: FSWatcher[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      for (const folder of new Set(files.map((file) => dirname(file)))) {
        const names = files.filter((file) => dirname(file) === folder).map((file) => basename(file));
        const watcher = watch(folder, (_, changed) => {
          if (changed === null || names.includes(changed)) resolve();
        });
        watchers.push(watcher.on('error', reject));
      }
    });
  } finally {
    for (const watcher of watchers) watcher.close();
  }
  await sleep(SETTLE_MS);
}

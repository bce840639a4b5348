import { setTimeout as sleep } from 'node:timers/promises';
import { SluiceError } from '@sluice/client';
import { endpointOf } from '../resources/kinds.js';
import { explain, usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { isFile } from '../session/files.js';
import type { Session } from '../session/session.js';
import { eventText } from '../streams/event-line.js';
import { connectionNotes } from '../streams/read-events.js';
import { type ComponentFile, nameOf, readComponent } from './component-file.js';
import { deployed, type DeployOptions } from './deploy.js';
import { sendProps } from './props.js';
import { versionsOf } from './versions-of.js';
import { showWarnings } from './warnings.js';

/** All that a source emits. */
const STREAMS = ['*', '$logs', '$errors'];

/** While the files are not a component, one that is not known yet may be missing. */
const BROKEN_MS = 500;

/**
 * `sluice dev FILE`: deploys the file to the source of this name, deploys it again whenever it or a file that it imports changes, and shows events,
 * logs and errors with the lines of the file.
 */
export async function dev(session: Session, file: string, { name = nameOf(file), prop }: DeployOptions): Promise<void> {
  if (session.format !== 'table') throw usageError('sluice dev is for people: it has no other output formats');
  if (!isFile(file)) throw usageError(`there is no file ${file}`);
  const versions = versionsOf(file, () => readable(session, file));
  let component = (await versions.next()).value;
  const deployNow = () =>
    sendProps(prop, {}, (configured_props) => deployed(session.sluice, name, { component_code: component.code, configured_props }));
  const nextChange = async (): Promise<void> => {
    component = (await versions.next()).value;
  };
  const firstSource = async (): ReturnType<typeof deployNow> => {
    for (;;) {
      try {
        return await deployNow();
      } catch (error) {
        if (!(error instanceof SluiceError) || error.status !== 400) throw error;
        session.warn(component.located(explain(error)));
        session.note('waiting for a change of the file, Ctrl-C ends');
      }
      await nextChange();
    }
  };
  const { source, outcome } = await firstSource();
  const slug = source.name_slug;
  process.prependOnceListener('SIGINT', () => session.note(`\n${slug} stays deployed: sluice off ${slug}, sluice delete ${slug}`));
  session.note(`${outcome} ${slug} (${source.id}); watching ${component.files.length} file(s), Ctrl-C ends`);
  const endpoint = endpointOf(source.configured_props);
  if (endpoint) session.note(`endpoint: ${endpoint}`);
  await showWarnings(session, source.component_id, component.placeOf);

  const show = async (eventName: string): Promise<void> => {
    const events = session.sluice.events(source.id, {
      eventName,
      parse: parseExactly,
      onState: connectionNotes(session, ` (${eventName})`),
    });
    for await (const event of events) session.printStyled(component.located(eventText(event, 'table')));
  };
  const watching = async (): Promise<void> => {
    for (;;) {
      await nextChange();
      try {
        const { source: again, outcome: change } = await deployNow();
        if (change === 'unchanged') continue;
        session.note(change);
        await showWarnings(session, again.component_id, component.placeOf);
      } catch (error) {
        session.warn(component.located(explain(error)));
      }
    }
  };
  await Promise.all([...STREAMS.map(show), watching()]);
}

/** The component, as soon as it can be read. Shows each problem once. */
async function readable(session: Session, file: string): Promise<ComponentFile> {
  for (let shown = ''; ; await sleep(BROKEN_MS)) {
    try {
      return await readComponent(file);
    } catch (error) {
      const problem = explain(error);
      if (problem !== shown) session.warn(problem);
      shown = problem;
    }
  }
}

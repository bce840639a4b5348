import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SluiceError, type Source, UnreachableError } from '@sluice/client';
import { endpointOf } from '../resources/kinds.js';
import { explain, usageError } from '../session/errors.js';
import { parseExactly } from '../session/exact-json.js';
import { isFile } from '../session/files.js';
import type { Session } from '../session/session.js';
import { eventText } from '../streams/event-line.js';
import { connectionNotes, lastEvents } from '../streams/read-events.js';
import { type ComponentFile, nameOf, readComponent } from './component-file.js';
import { changed, created, type Deployed, type DeployOptions, offNote, sourceNamed } from './deploy.js';
import { sendProps } from './props.js';
import { versionsOf } from './versions-of.js';
import { showWarnings } from './warnings.js';

/** All that a source emits. */
const STREAMS = ['*', '$logs', '$errors'];
/** Before all events. */
const BEGINNING = '0-0';

/** While the files are not a component, one that is not known yet may be missing. */
const BROKEN_MS = 500;
/** While Sluice cannot be reached. */
const AGAIN_MS = 2000;

/**
 * `sluice dev FILE`: deploys the file to the source of this name, deploys it again whenever it or a file that it imports changes, and shows events,
 * logs and errors with the lines of the file.
 */
export async function dev(session: Session, file: string, { name = nameOf(file), prop }: DeployOptions): Promise<void> {
  if (session.format !== 'table') throw usageError('sluice dev is for people: it has no other output formats');
  if (!isFile(file)) throw usageError(`there is no file ${file}`);
  const notes = new VersionNotes(session, file);
  const versions = versionsOf(file, () => readable(notes, file));
  const component = (await versions.next()).value;
  const before = await sourceNamed(session.sluice, name);
  // also what its hooks emit and log while it is deployed
  const newest = new Map(await Promise.all(STREAMS.map(async (stream) => [stream, await newestId(session, before, stream)] as const)));
  const work = new Development(session, notes, { name, prop, component, versions, source: before });

  let first = await work.deploy();
  for (; !first; first = await work.deploy()) {
    session.note('waiting for a change of the file, Ctrl-C ends');
    await work.change();
  }
  const { id, name_slug: slug } = first.source;
  process.prependOnceListener('SIGINT', () => session.note(`\n${slug} stays deployed: sluice off ${slug}, sluice delete ${slug}`));
  session.note(`${first.outcome} ${slug} (${id}); watching ${work.component.files.length} file(s), Ctrl-C ends`);
  let isReported = await work.report(first.source);

  session.endWithReader();
  const show = async (eventName: string): Promise<void> => {
    const onState = connectionNotes(session, ` (${eventName})`);
    const events = session.sluice.events(id, { eventName, after: newest.get(eventName), parse: parseExactly, onState });
    for await (const event of events) await session.printNext(work.component.located(eventText(event, 'table')));
  };
  const watching = async (): Promise<void> => {
    for (;;) {
      await work.change();
      const result = await work.deploy().catch((error: unknown) => notes.problem(work.component.located(explain(error))));
      if (!result) continue;
      notes.deployed(result.outcome);
      if (result.outcome !== 'unchanged' || !isReported) isReported = await work.report(result.source);
    }
  };
  await Promise.all([...STREAMS.map(show), watching()]);
}

/** Remarks on the versions of a file. As the events beside them, they begin with the time. */
class VersionNotes {
  private isWrong = false;

  constructor(
    private readonly session: Session,
    private readonly file: string,
  ) {}

  problem(text: string): void {
    this.isWrong = true;
    this.session.warn(this.line(text));
  }

  /** A version that was deployed already is worth a remark only after a problem. */
  deployed(outcome: Deployed['outcome']): void {
    if (outcome !== 'unchanged') this.session.note(this.line(outcome));
    else if (this.isWrong) this.session.note(this.line('right again, as it is deployed'));
    this.isWrong = false;
  }

  private line(text: string): string {
    return `${new Date().toISOString()}  ${this.file}: ${text}`;
  }
}

interface Begun {
  name: string;
  prop: string[] | undefined;
  component: ComponentFile;
  /** The versions that follow. */
  versions: AsyncGenerator<ComponentFile, never>;
  /** The source that has the name, if there is one. */
  source: Source | undefined;
}

/** A source that follows the versions of a file. */
class Development {
  /** The newest version. */
  component: ComponentFile;
  private source: Source | undefined;
  private next: Promise<IteratorResult<ComponentFile, never>>;
  private endpoint: string | undefined;

  constructor(
    private readonly session: Session,
    private readonly notes: VersionNotes,
    private readonly begun: Begun,
  ) {
    ({ component: this.component, source: this.source } = begun);
    this.next = begun.versions.next();
  }

  /** Resolves when the file has changed. */
  async change(): Promise<void> {
    this.component = (await this.next).value;
    this.next = this.begun.versions.next();
  }

  /**
   * Deploys the newest version, as soon as Sluice can be reached. Undefined if it is refused, which it has reported: another change of the file is needed.
   * Throws if no change would help.
   */
  async deploy(): Promise<Deployed | undefined> {
    for (let isNoted = false; ; isNoted = true) {
      try {
        const result = await this.attempt();
        this.source = result.source;
        return result;
      } catch (error) {
        if (!isPassing(error) && !isRefusal(error)) throw error;
        if (!isNoted) this.notes.problem(this.component.located(explain(error)));
        if (isRefusal(error)) return undefined;
      }
      if (await this.hasChanged()) await this.change();
    }
  }

  /** Reports what users should know of the source as it is now, as soon as Sluice can be reached. Returns false if the file changes first. */
  async report(source: Source): Promise<boolean> {
    for (let isNoted = false; ; isNoted = true) {
      try {
        await this.show(source);
        return true;
      } catch (error) {
        if (!isPassing(error)) throw error;
        if (!isNoted) this.session.warn(explain(error));
      }
      if (await this.hasChanged()) return false;
    }
  }

  /** Resolves when the file has changed or, with false, when it is time for another attempt. */
  private hasChanged(): Promise<boolean> {
    return Promise.race([this.next.then(() => true), sleep(AGAIN_MS, false)]);
  }

  private async show(source: Source): Promise<void> {
    const endpoint = await endpointOf(this.session.sluice, source);
    if (endpoint !== undefined && endpoint !== this.endpoint) this.session.note(`endpoint: ${endpoint}`);
    this.endpoint = endpoint;
    if (!source.active) this.session.warn(offNote(source));
    await showWarnings(this.session, source.component_id, this.component.placeOf);
  }

  private async attempt(): Promise<Deployed> {
    const { session, begun } = this;
    // once it is known, another name does not make it another one; an attempt without a response may have created it
    const source = (this.source ??= await sourceNamed(session.sluice, begun.name));
    return sendProps(begun.prop, {}, (configured_props) => {
      const body = { component_code: this.component.code, configured_props };
      return source ? changed(session.sluice, source, body) : created(session.sluice, begun.name, body);
    });
  }
}

/** The id of the newest event of the source in the stream. */
async function newestId({ sluice }: Session, source: Source | undefined, stream: string): Promise<string> {
  const [newest] = source ? await lastEvents(sluice, source.id, 1, stream) : [];
  return newest?.id ?? BEGINNING;
}

/** Whether the same request may succeed later. */
const isPassing = (error: unknown): boolean =>
  error instanceof UnreachableError || (error instanceof SluiceError && [429, 502, 503, 504].includes(error.status));

/** Whether the component, or a value for it, is refused. */
const isRefusal = (error: unknown): boolean => error instanceof SluiceError && error.status === 400;

/** The component, as soon as it can be read. Shows each problem once. */
async function readable(notes: VersionNotes, file: string): Promise<ComponentFile> {
  const workingFolder = process.cwd();
  for (let shown = ''; ; await sleep(BROKEN_MS)) {
    try {
      // another folder may have replaced it, and the working directory stays the former one
      if (existsSync(workingFolder)) process.chdir(workingFolder);
      return await readComponent(file);
    } catch (error) {
      const problem = explain(error);
      if (problem !== shown) notes.problem(problem);
      shown = problem;
    }
  }
}

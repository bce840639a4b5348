import {
  type ComponentDescription,
  type ComponentWarning,
  type DedupeStrategy,
  type Hook,
  type PropDefinition,
  Unavailable,
} from '#contracts';

export type { ComponentDescription, ComponentWarning, DedupeStrategy, Hook, PropDefinition };

/**
 * Where users' code runs. A component cannot throw into its caller or pass it an object: outcomes carry only plain values and JSON text that were
 * checked on this side. The class is the injection token.
 */
export abstract class Sandbox {
  /**
   * Evaluates the code in a temporary process and describes the component.
   * @throws PackagesMissing if the caller installs packages and the component imports some; ComponentRejected if the component is invalid;
   * SandboxUnavailable if no process could be started; TooMuchWaiting; CallerGone
   */
  abstract inspect(component: ComponentCode, caller?: Inspector): Promise<ComponentDescription>;

  /**
   * Installs packages with npm in a jail that reaches the registry only, and bundles them.
   * @throws ComponentRejected if one does not exist or is not acceptable; TooMuchDownloaded; TooMuchWaiting; CallerGone
   */
  abstract bundlePackages(imports: PackageImport[], caller?: Caller): Promise<PackageBundle>;

  /**
   * Bundles an entry file and its relative imports into one file, in a temporary process.
   * @throws ComponentRejected if an import is missing or a file does not parse; TooMuchWaiting; CallerGone
   */
  abstract bundle(files: ComponentFiles, caller?: Caller): Promise<string>;

  /**
   * Runs `run` or a hook. Does not throw if the component fails, nor if `close` interrupts the run: see `isInterrupted`.
   * @throws SandboxUnavailable if no process could be started
   */
  abstract run(job: RunJob): Promise<RunOutcome>;

  /**
   * The source was deleted or changed. Ends the process that has run it, after the runs in progress, but not before the account has had it for ten seconds.
   * This also ends code that a run left running with the former props, and undoes changes to what the account's sources share.
   */
  abstract forget(accountId: string, sourceId: string): void;

  /** The jail and the load, for the log and the health route. */
  abstract health(): SandboxHealth;

  /** Ends every process. Runs in flight end as `killed`. */
  abstract close(): Promise<void>;
}

/** The error code of a run that has not ended by itself, because the sandbox was closed. */
export const CLOSED = 'CLOSED';

/** Whether the sandbox was closed before the run ended. A component can throw an error with that code, too, but not with that status. */
export const isInterrupted = ({ status, error }: Pick<RunOutcome, 'status' | 'error'>): boolean =>
  status === 'killed' && error?.code === CLOSED;

/** The caller of an inspection: the account whose turn it takes, and how long the caller waits. */
export interface Caller {
  /** Absent: the operator */
  accountId?: string;
  /** When the caller stops waiting, in ms since the epoch; absent: after the sandbox's own limit */
  until?: number;
}

export interface Inspector extends Caller {
  /** Whether packages that the component imports can be installed: then they are reported instead of being missing */
  installs?: boolean;
}

export interface ComponentCode {
  /** SHA-256 of the code, hex */
  hash: string;
  code: string;
  /** A PackageBundle's code, if the component imports packages that are not part of Sluice */
  packages?: string;
}

/** An import of a package, as the code names it. */
export interface PackageImport {
  /** For example `luxon`, `@octokit/core@^6`, `lodash/get` */
  specifier: string;
  kind: 'import' | 'require';
  /** Whether the component cannot be loaded without it */
  isStatic: boolean;
  line: number | null;
}

/** Packages as one ES module: it exports `import <specifier>`, a module's exports, and `require <specifier>`, a function that returns them. */
export interface PackageBundle {
  code: string;
  /** The code as it travels and is stored: compressed with Zstandard, in base64 */
  packed: string;
  /** The exact version of each package, by specifier */
  versions: Record<string, string>;
  warnings: ComponentWarning[];
}

/** The description of a component, without running it. */
export interface CodeOutline {
  imports: PackageImport[];
  warnings: ComponentWarning[];
}

export interface ComponentFiles {
  /** A path of `files` */
  entry: string;
  /** Code by path, `/`-separated, relative to one common folder */
  files: Record<string, string>;
}

export interface RunJob {
  runId: string;
  accountId: string;
  sourceId: string;
  component: ComponentCode;
  /** `options`: of a prop; the event is an OptionsCall, and the last emit is the result, as JSON. */
  method: 'run' | Hook | 'options';
  /** The configured values; a prop that is absent has its default */
  props: Record<string, unknown>;
  endpoint: string | null;
  /** JSON text by key */
  db: Record<string, string>;
  /** JSON text */
  event: string | undefined;
  /** The body of an HTTP request, in base64, if it is not in the event yet */
  httpBody?: string;
  /** How many runs of this account may share the process, if the component needs more than the sandbox's own limit */
  concurrency?: number;
  /** Called at most once, during the run */
  onRespond?(response: HttpReply): void;
  /** Called at most once after the run, when code that it left running throws. Only the last few runs of a process are remembered */
  onLateError?(error: RunError): void;
  /** Default: the sandbox's limit */
  wallMs?: number;
}

/** A call of a prop's `options()`, as the event of such a run. */
export interface OptionsCall {
  prop: string;
  query: string | null;
  page: number;
  prev_context: unknown;
}

export interface HttpReply {
  status: number;
  /** A list if a header occurs several times */
  headers: Record<string, string | string[]>;
  body: Buffer;
}

export interface Emit {
  /** JSON text, as the component's value was stringified */
  event: string;
  id?: string;
  /** The stream */
  name?: string;
  summary?: string;
  /** ms */
  ts?: number;
  /** ms */
  deliveryTs?: number;
}

export interface LogLine {
  level: string;
  /** ms */
  ts: number;
  message: string;
  /** The logged values that are not text, as JSON text of a list */
  args?: string;
}

/**
 * - `ok` it returned
 * - `threw` it threw, or something it started did
 * - `timeout` the wall clock's limit
 * - `memory` it needed more memory than the limit
 * - `crashed` its process exited or sent an invalid message
 * - `killed` it used too much CPU, blocked the event loop or wrote too much output
 */
export type RunStatus = 'ok' | 'threw' | 'timeout' | 'memory' | 'crashed' | 'killed';

/** Runs that ended their process. */
export const KILLED: RunStatus[] = ['memory', 'crashed', 'killed', 'timeout'];

export interface RunError {
  name: string;
  code: string | null;
  message: string;
  stack: string;
}

export interface RunOutcome {
  status: RunStatus;
  /** null if and only if the status is `ok` */
  error: RunError | null;
  /** The errors of refused calls (`$emit`, `db.set`, …) that the component has caught; absent: none */
  refused?: RunError[];
  /** In the order of the calls. Events, db changes and logs from before the end are kept, however the run ended */
  emits: Emit[];
  logs: LogLine[];
  /** JSON text by changed key; null: gone */
  db: Record<string, string | null>;
  wallMs: number;
  cpuMs: number;
  /** For which it has occupied this process's main thread, which the runs of all accounts share */
  mainMs: number;
  responded: boolean;
}

export interface SandboxHealth {
  /** The jail's rung */
  jail: string;
  /** Why stronger rungs were not used */
  refused: { jail: string; reason: string }[];
  processes: number;
  running: number;
  waiting: number;
}

/** The sandbox cannot start processes. The component is not the cause, and a retry may succeed. */
export class SandboxUnavailable extends Unavailable {
  override readonly name = 'SandboxUnavailable';

  constructor(message: string) {
    super(message, 'components cannot run at the moment');
  }
}

/** A mistake in a component. The message is written for its author and returned unchanged in a 400. */
export class ComponentRejected extends Error {
  override readonly name = 'ComponentRejected';

  constructor(
    message: string,
    /** The line of the component's code, if known */
    readonly line: number | null = null,
    /** The author's file with this line, as a path in the component's bundle; null if the component is one file */
    readonly file: string | null = null,
  ) {
    super(message);
  }
}

/** The component imports packages that have to be installed before it can be loaded. */
export class PackagesMissing extends ComponentRejected {
  constructor(readonly imports: PackageImport[]) {
    super(`The packages ${imports.map(({ specifier }) => `"${specifier}"`).join(', ')} are not installed`);
  }
}

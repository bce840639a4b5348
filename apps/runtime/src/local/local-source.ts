import {
  type ComponentCode,
  type ComponentDescription,
  type Emit,
  type HttpReply,
  type LogLine,
  type RunError,
  type RunJob,
  type RunStatus,
  type Sandbox,
} from '../sandbox/sandbox.js';
import type { DedupeState } from '../source-state/dedupe.js';
import { judgedEmits } from '../source-state/judged-emits.js';

/** The state that a source keeps between runs. */
export interface LocalState {
  /** Values by key */
  db: Record<string, unknown>;
  dedupe: DedupeState;
}

/** One run or hook, as it would be stored. */
export interface LocalRun {
  method: 'run' | 'deploy' | 'activate' | 'deactivate';
  status: RunStatus;
  duration_ms: number;
  logs: LogLine[];
  /** In the order in which they would be published */
  emits: Emit[];
  /** Emits that dedupe drops, and emits that become errors */
  dropped: { emit: Emit; reason: string }[];
  /** The keys that changed, with their values; undefined: gone */
  db: Record<string, unknown>;
  response: { status: number; headers: Record<string, string | string[]>; body: string } | null;
  error: RunError | null;
  /** The errors of refused calls that the component has caught */
  refused: RunError[];
}

interface LocalSourceOptions {
  component: ComponentCode;
  description: ComponentDescription;
  props: Record<string, unknown>;
  endpoint: string;
  state: LocalState;
}

/** A source without a system around it: its runs and hooks in the sandbox, and the state that they leave. */
export class LocalSource {
  private runs = 0;
  /** Errors of code that continued after its run. */
  readonly lateErrors: RunError[] = [];

  constructor(
    private readonly sandbox: Sandbox,
    private readonly options: LocalSourceOptions,
  ) {}

  /** @param event the event as JSON; absent for a hook */
  async run(method: LocalRun['method'], event?: string): Promise<LocalRun> {
    const { component, description, props, endpoint, state } = this.options;
    let reply: HttpReply | null = null;
    const job: RunJob = {
      ...{ runId: `local-${++this.runs}`, accountId: 'local', sourceId: 'dc_local', component, method, props, endpoint, event },
      db: Object.fromEntries(Object.entries(state.db).map(([key, value]) => [key, JSON.stringify(value)])),
      onRespond: (sent) => (reply = sent),
      onLateError: (error) => this.lateErrors.push(error),
    };
    const outcome = await this.sandbox.run(job);
    const { emits, state: after, refused } = judgedEmits(outcome.emits, description.dedupe, state.dedupe, Date.now());
    state.dedupe = after;
    const db = Object.fromEntries(
      Object.entries(outcome.db).map(([key, text]) => [key, text === null ? undefined : (JSON.parse(text) as unknown)]),
    );
    // a key can be `__proto__`, which an assignment would lose
    const values = new Map([...Object.entries(state.db), ...Object.entries(db)]);
    state.db = Object.fromEntries([...values].filter(([, value]) => value !== undefined));
    const sent = reply as HttpReply | null;
    const duplicates = outcome.emits.filter((emit) => !emits.includes(emit) && !refused.some((each) => each.emit === emit));
    return {
      method,
      status: outcome.status,
      duration_ms: Math.ceil(outcome.wallMs),
      logs: outcome.logs,
      emits,
      dropped: [...refused, ...duplicates.map((emit) => ({ emit, reason: `dedupe "${description.dedupe}" has seen it` }))],
      db,
      response: sent && { status: sent.status, headers: sent.headers, body: sent.body.toString('utf8') },
      error: outcome.error,
      refused: outcome.refused ?? [],
    };
  }
}

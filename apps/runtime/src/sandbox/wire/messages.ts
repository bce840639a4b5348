import type { Hook, PackageImport } from '../sandbox.js';

/** The messages to a runner process. */
export type ToGuest =
  | { t: 'setup'; limits: GuestLimits; modules: string[]; trustedCa: string | null; hardened: boolean; egress: string }
  | { t: 'warm'; modules: string[] }
  | { t: 'ping'; n: number }
  /** `installs`: packages that are not available are reported as `missing` */
  | { t: 'inspect'; id: string; hash: string; code: string; packages: string | undefined; installs: boolean }
  | RunMessage;

export interface RunMessage {
  t: 'run';
  id: string;
  hash: string;
  /** Absent if this process already has it */
  code: string | undefined;
  /** Likewise, and for a component without installed packages */
  packages: string | undefined;
  /** Which runs share the variables of the code */
  variables: string;
  method: 'run' | Hook | 'options';
  sourceId: string;
  props: Record<string, unknown>;
  endpoint: string | null;
  db: Record<string, string>;
  event: string | undefined;
  /** Base64; absent: the event is complete */
  httpBody: string | undefined;
}

/**
 * The messages of a runner process. The parent trusts none of them beyond "this is the output of run X", and X must be a run that it started there;
 * `guest-message.ts` checks the shapes.
 */
export type FromGuest =
  | { t: 'ready' }
  | { t: 'pong'; n: number }
  /** The first one shows that the run has begun; it may have no output. */
  | { t: 'out'; id: string; out: OutputItem[] }
  | { t: 'respond'; id: string; status: number; headers: Record<string, string | string[]>; body: string }
  /** `refused`: the errors of refused calls that the component has caught; absent: none */
  | { t: 'done'; id: string; out: OutputItem[]; error: GuestError | null; refused?: GuestError[] }
  | { t: 'described'; id: string; description: unknown }
  | { t: 'missing'; id: string; imports: PackageImport[] }
  | { t: 'rejected'; id: string; message: string; line: number | null; file: string | null }
  /** Code that an ended run left running has thrown. */
  | { t: 'late'; id: string; error: GuestError };

/** Tuples, because in most runs, which are small, names would take most of the bytes. */
export type OutputItem =
  | ['emit', event: string, meta: EmitMeta]
  | ['log', level: string, ts: number, message: string, args: string | null]
  | ['db', key: string, value: string | null];

export interface EmitMeta {
  id?: string;
  name?: string;
  summary?: string;
  ts?: number;
  deliveryTs?: number;
}

/** The most refused calls of a run that are described; how many more there are is one further error. */
export const mostRefused = 10;

export interface GuestError {
  name: string;
  code: string | null;
  message: string;
  stack: string;
}

/** The limits that the guest keeps itself, so that they become errors in the component's own code. The parent checks them again. */
export interface GuestLimits {
  emits: number;
  eventBytes: number;
  emittedBytes: number;
  eventDepth: number;
  logs: number;
  logBytes: number;
  dbBytes: number;
  /** Keys that a source keeps, and keys that one run may change */
  dbKeys: number;
  respondBytes: number;
}

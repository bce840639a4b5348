import type { GuestLimits } from './wire/messages.js';

/** Times in ms, sizes in bytes unless the name says otherwise. */
export interface SandboxLimits extends GuestLimits {
  /** The start of a process, on the wall's clock */
  startMs: number;
  /** A run, on the wall's clock */
  wallMs: number;
  /** An inspection or a bundling whose caller sets no timeout, on the wall's clock */
  inspectMs: number;
  /** An installation of packages whose caller sets no timeout, on the wall's clock */
  installMs: number;
  /** How long a component may do nothing while it is loaded */
  inspectIdleMs: number;
  /** A run, an inspection or a bundling, on its process's CPU clock */
  cpuMs: number;
  /** How much CPU a process may burn without replying to a ping. If it burns none: four times as much wall time, less its waiting for a CPU */
  silenceCpuMs: number;
  /** Resident memory of a process */
  memoryMb: number;
  /** V8's heap; beside it there are buffers, stacks and code */
  heapMb: number;
  /** One frame from a process */
  frameBytes: number;
  /** Strings, lists, objects and commas in the JSON of one frame: what reading it costs */
  frameTokens: number;
  /** Everything that one run puts out; a little more than its parts' limits together */
  outputBytes: number;
  /** In all frames of one run */
  outputTokens: number;
}

export const defaultLimits: SandboxLimits = {
  startMs: 15_000,
  wallMs: 30_000,
  inspectMs: 15_000,
  installMs: 60_000,
  inspectIdleMs: 2_000,
  cpuMs: 5_000,
  silenceCpuMs: 2_000,
  memoryMb: 256,
  heapMb: 128,
  frameBytes: 8 << 20,
  frameTokens: 40_000,
  outputBytes: 48 << 20,
  outputTokens: 200_000,
  emits: 1000,
  eventBytes: 1 << 20,
  emittedBytes: 8 << 20,
  eventDepth: 200,
  logs: 500,
  logBytes: 16 << 10,
  dbBytes: 1 << 20,
  dbKeys: 10_000,
  respondBytes: 5 << 20,
};

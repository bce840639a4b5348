import type { AddressGuardOptions } from '#egress';
import { curatedModules } from './curated-modules.js';
import { defaultEgressLimits, type EgressLimits } from './egress/egress-budget.js';
import type { JailChoice } from './jail/choose-jail.js';
import type { PackageSettings } from './packages/package-installer.js';
import type { GuestLimits } from './wire/messages.js';

/** Times in ms, sizes in bytes unless the name says otherwise. */
export interface SandboxLimits extends GuestLimits {
  /** Wall-clock time of the start of a process */
  startMs: number;
  /** Wall-clock time of a run */
  wallMs: number;
  /** The same of `deactivate` */
  deactivateMs: number;
  /** Wall-clock time of an inspection or a bundling, from its turn on */
  inspectMs: number;
  /** Wall-clock time of an installation whose caller sets no timeout */
  installMs: number;
  /** How long a component may be idle while it is loaded */
  inspectIdleMs: number;
  /** CPU time of a run, an inspection or a bundling */
  cpuMs: number;
  /** CPU time that a process may use without a reply to a ping. Also the limit of wall-clock time, times four, without the time it waits for a CPU */
  silenceCpuMs: number;
  /** Resident memory of a process */
  memoryMb: number;
  /** Files and folders in the temporary folder of a process */
  temporaryFiles: number;
  /** V8's heap, without buffers, stacks and code */
  heapMb: number;
  /** One frame from a process */
  frameBytes: number;
  /** Strings, lists, objects and commas in the JSON of one frame, which determine the cost of reading it */
  frameTokens: number;
  /** All output of one run; a little more than the sum of the limits of its parts */
  outputBytes: number;
  /** All output of all runs in progress, and all frames that have not arrived completely. This service holds both in memory. */
  heldOutputBytes: number;
  /** In all frames of one run */
  outputTokens: number;
  /** In which all frames of one run arrive. Reading a piece takes as long as reading a page, however small it is */
  outputPieces: number;
  /** In which a process writes to its standard error */
  errorPieces: number;
}

export const defaultLimits: SandboxLimits = {
  startMs: 15_000,
  wallMs: 30_000,
  deactivateMs: 10_000,
  inspectMs: 15_000,
  installMs: 60_000,
  inspectIdleMs: 2_000,
  cpuMs: 5_000,
  silenceCpuMs: 2_000,
  memoryMb: 256,
  temporaryFiles: 5_000,
  heapMb: 128,
  frameBytes: 8 << 20,
  frameTokens: 40_000,
  outputBytes: 48 << 20,
  heldOutputBytes: 256 << 20,
  outputTokens: 200_000,
  outputPieces: 40_000,
  errorPieces: 10_000,
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

export interface SandboxConfig {
  /** The folder for the jail's root directory. Unless other users can reach it, the root is in the temporary directory. */
  dataDir: string;
  /** Folders that may contain a prebuilt root: if one matches, nothing is written to `dataDir` */
  prebuiltJailRoots: string[];
  jail: JailChoice;
  /** Whether to start even without a jail that contains hostile code */
  trustsComponents: boolean;
  /** `SLUICE_ALLOW_PRIVATE_HOSTS` */
  allowPrivateHosts: string;
  /** Resolves host names for components; default: the system's resolver */
  lookup?: AddressGuardOptions['lookup'];
  /** The stores and services that no component may reach; default: those of the environment */
  ownHosts?: AddressGuardOptions['ownHosts'];
  egress: EgressLimits;
  limits: SandboxLimits;
  /** One process per account, or per source: an account's components can otherwise change what the next one sees (`Array.prototype`, …) */
  isolation: 'account' | 'source';
  modules: string[];
  /** Which packages components may import beside `modules` */
  packages: PackageSettings;
  /** Loaded in processes that wait for an account */
  warmModules: string[];
  /** Processes kept ready for accounts that have none; one while no account needs a process, and none after an hour without a run */
  blanks: number;
  maxProcesses: number;
  /** Processes being started at a time */
  maxStarting: number;
  /** Runs of one account at a time; the others wait */
  runsPerProcess: number;
  idleMs: number;
  /** A process is replaced after this many runs or modules of components, or after this time, because what they leave behind cannot be cleaned up */
  maxRuns: number;
  maxModules: number;
  /** Of its modules together, in characters: each source of a component has a copy of what its code creates in memory */
  maxCodeLength: number;
  maxAgeMs: number;
  /** The same if its last runs have all failed: one of them may have changed what they share */
  doubtfulAgeMs: number;
  /** The same if it has run a source that was deleted or changed */
  outdatedAgeMs: number;
  /** A certificate authority (PEM) that components trust in addition to the public ones */
  trustedCa: string | null;
  /** false: components keep functions of `process` that only fail in the jail. For tests of the jail */
  hardened: boolean;
}

export const defaultSandboxConfig: Omit<SandboxConfig, 'dataDir'> = {
  prebuiltJailRoots: [],
  jail: 'auto',
  trustsComponents: false,
  allowPrivateHosts: '',
  egress: defaultEgressLimits,
  limits: defaultLimits,
  isolation: 'account',
  modules: curatedModules,
  packages: { policy: 'none', list: [], store: '' },
  warmModules: ['axios', '@pipedream/platform', 'lodash'],
  blanks: 2,
  maxProcesses: 100,
  maxStarting: 4,
  runsPerProcess: 4,
  idleMs: 60_000,
  maxRuns: 500,
  maxModules: 300,
  maxCodeLength: 8 << 20,
  maxAgeMs: 15 * 60_000,
  doubtfulAgeMs: 60_000,
  outdatedAgeMs: 10_000,
  trustedCa: null,
  hardened: true,
};

import type { AddressGuardOptions } from '#egress';
import { curatedModules } from './curated-modules.js';
import { defaultEgressLimits, type EgressLimits } from './egress/egress-budget.js';
import type { JailChoice } from './jail/choose-jail.js';
import type { PackageSettings } from './packages/package-installer.js';
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

export interface SandboxConfig {
  /** Where the jail's root directory is kept over restarts. A folder that other users can reach, or it goes to the temporary one. */
  dataDir: string;
  /** Folders that may hold a jail's root built beforehand: with one that fits, nothing is written to `dataDir` */
  prebuiltJailRoots: string[];
  jail: JailChoice;
  /** Start even without a jail that holds hostile code */
  trustsComponents: boolean;
  /** `SLUICE_ALLOW_PRIVATE_HOSTS` */
  allowPrivateHosts: string;
  /** How components' host names become addresses; default: the system's resolver */
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
  /** Processes kept ready for accounts that have none */
  blanks: number;
  maxProcesses: number;
  /** Processes being started at a time */
  maxStarting: number;
  /** Runs of one account at a time; the others wait */
  runsPerProcess: number;
  idleMs: number;
  /** A process is replaced after this many runs or components, because what they leave behind cannot be cleaned up */
  maxRuns: number;
  maxHashes: number;
  /** PEM of a certificate authority that components trust beside the public ones */
  trustedCa: string | null;
  /** false: components keep what `process` has that ends in nothing but errors here. For tests of the jail itself */
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
  maxHashes: 300,
  trustedCa: null,
  hardened: true,
};

import type { AddressGuardOptions } from '#egress';
import { defaultEgressLimits, type EgressLimits } from './egress/egress-limits.js';
import type { JailChoice } from './jail/choose-jail.js';
import type { PackageSettings } from './packages/package-installer.js';
import { curatedModules } from './curated-modules.js';
import { defaultLimits, type SandboxLimits } from './sandbox-limits.js';

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

import type { EgressLimits } from '../egress/egress-budget.js';

/** The limits of one installation. Sizes in bytes, times in ms. */
export const defaultInstallLimits = {
  /** Packages that one component may name */
  named: 20,
  /** With their dependencies */
  packages: 300,
  files: 30_000,
  bytes: 200 << 20,
  downloadedBytes: 150 << 20,
  wallMs: 40_000,
  cpuMs: 40_000,
  heapMb: 256,
  /** The bundle, and the bundle compressed, as it is stored */
  bundleBytes: 12 << 20,
  storedBytes: 2 << 20,
  /**
   * The store of downloads on the disk; over it, the store is emptied. Installations take up to 800 MB in addition, and the volume of
   * `k8s/base/runtime.yaml` has to be large enough for both and the jail's root.
   */
  storeBytes: 1 << 30,
};

export type InstallLimits = typeof defaultInstallLimits;

export const installEgress = ({ wallMs, downloadedBytes }: InstallLimits): EgressLimits => ({
  connections: 24,
  waiting: 1000,
  perMinute: 3000,
  chunksPerSecond: 2000,
  refusedPerMinute: 5000,
  headMs: 5_000,
  connectMs: 8_000,
  idleMs: 20_000,
  lifeMs: wallMs,
  lingerMs: 2_000,
  bytesDown: downloadedBytes,
  bytesUp: 8 << 20,
});

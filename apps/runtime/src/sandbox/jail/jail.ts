/** From the strongest down. Below `setpriv-lsm` a component can reach things that it must not. */
export type Rung = 'bwrap' | 'unshare' | 'setpriv-lsm' | 'setpriv' | 'none';

/**
 * A way to start a program with as little around it as the system allows. It only builds the command line; the process that starts it provides
 * descriptor 3 for the frames, and `descriptors` from 4 on.
 */
export interface Jail {
  readonly rung: Rung;
  command(program: JailedProgram): JailCommand;
}

/** As many mount points as the jail's root has for them. */
export const mostWritable = 2;

export interface JailedProgram {
  kind: 'runner' | 'probe' | 'bundler' | 'npm';
  /** Files of this one process: its egress socket, or the sources to bundle. Seen inside under `exchangePath`. */
  exchangeDir: string;
  /** The user that it runs as, where we are root: never used again, so that nothing of an earlier process can be in reach */
  uid: number;
  heapMb: number;
  /** Folders of this machine that it may write to, at most `mostWritable`; where we are root, its user must own them */
  writable?: string[];
  /** What the program is called with */
  args: string[];
}

export interface JailCommand {
  file: string;
  args: string[];
  env: Record<string, string>;
  /** Files that the program's launcher reads, to be opened for reading and handed over as descriptors 4, 5, … */
  descriptorFiles: string[];
  /** Where the program sees the exchange folder */
  exchangePath: string;
  /** Where the program sees the writable folders */
  writablePaths: string[];
}

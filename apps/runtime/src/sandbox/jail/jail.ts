/** Strongest first. Below `setpriv-lsm`, a component can reach things that it must not. */
export type Rung = 'bwrap' | 'unshare' | 'setpriv-lsm' | 'setpriv' | 'none';

/**
 * A way to start a program isolated from the system. It only builds the command line. The process that starts the program provides descriptor 3 for
 * the frames, and opens `descriptorFiles` as descriptors 4, 5, …
 */
export interface Jail {
  readonly rung: Rung;
  command(program: JailedProgram): JailCommand;
}

/** The number of mount points that the jail's root has for them. */
export const mostWritable = 2;

export interface JailedProgram {
  kind: 'runner' | 'probe' | 'bundler' | 'npm';
  /** The files of this process: its egress socket, or the sources to bundle. Inside the jail, its path is `exchangePath`. */
  exchangeDir: string;
  /** The user of the process if we are root. No user is used twice, so a process cannot reach files of an earlier one */
  uid: number;
  heapMb: number;
  /** Folders of this machine that it may write to, at most `mostWritable`; where we are root, its user must own them */
  writable?: string[];
  /** The arguments of the program */
  args: string[];
}

export interface JailCommand {
  file: string;
  args: string[];
  env: Record<string, string>;
  /** Files for the launcher, to be opened for reading as descriptors 4, 5, … */
  descriptorFiles: string[];
  /** The path of the exchange folder inside the jail */
  exchangePath: string;
  /** Where the program sees the writable folders */
  writablePaths: string[];
}

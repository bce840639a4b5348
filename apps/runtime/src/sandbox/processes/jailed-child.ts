import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { killJailed } from '../jail/run-in-jail.js';
import { lastDescendant } from '../jail/process-usage.js';
import { pieceMs } from './runner-channel.js';
import { endByItself, type RunnerEnd } from './runner-end.js';

const drainMs = 500;
const keptErrorBytes = 4096;
// Only Node itself and packages that warn write there
const mostErrorBytes = 1 << 20;

/** The operating system's processes of a runner: the launcher and the program that it starts, their standard error and their exit. */
export class JailedChild {
  /** Of the program itself; 0 until `locate`. */
  private innerPid = 0;
  private errors = '';
  private errorBytes = 0;
  private errorPieces = 0;
  private killed = false;

  /**
   * @param child as `startInJail` returns it
   * @param mostErrorPieces in which it may write to its standard error
   * @param onCost receives the time of the main thread that reading its standard error takes, in ms
   * @param onFailure called if the process must be killed, or cannot be
   * @param onGone called when the process has ended and all of its output was read; may be called more than once
   */
  constructor(
    private readonly child: ChildProcess,
    private readonly mostErrorPieces: number,
    onCost: (ms: number) => void,
    onFailure: (end: RunnerEnd) => void,
    onGone: (end: RunnerEnd) => void,
  ) {
    child.stderr!.on('data', (chunk: Buffer) => {
      if (this.errors.length < keptErrorBytes) this.errors += chunk.toString('latin1');
      this.errorBytes += chunk.length;
      onCost(pieceMs);
      if (++this.errorPieces > mostErrorPieces || this.errorBytes > mostErrorBytes)
        onFailure({ status: 'killed', code: 'OUTPUT', message: 'The code wrote too much to its standard error' });
    });
    child.on('error', ({ message }) => onFailure({ status: 'crashed', code: 'KILL', message }));
    let exit = 'unknown';
    const gone = (): void => onGone(endByItself(this.errors, exit));
    child.on('exit', (code, signal) => {
      exit = signal ?? String(code);
      // The last output may be unread. Code that holds the channel open must not delay the end for longer.
      if (this.killed) gone();
      else setTimeout(gone, drainMs).unref();
    });
    child.on('close', gone);
  }

  get channel(): Socket {
    return this.child.stdio[3] as Socket;
  }

  /** Whether it has written half of what it may write to its standard error: its limit would end the runs in progress. */
  get hasWarnedMuch(): boolean {
    return this.errorPieces > this.mostErrorPieces / 2 || this.errorBytes > mostErrorBytes / 2;
  }

  get firstError(): string {
    return this.errors.trim().split('\n')[0]!;
  }

  /** Returns the pid of the program. Call it before any code of a component runs, which could start another program. */
  locate(): number {
    return (this.innerPid = lastDescendant(this.child.pid!));
  }

  kill(): void {
    this.killed = true;
    killJailed(this.child, this.innerPid || lastDescendant(this.child.pid!));
  }
}

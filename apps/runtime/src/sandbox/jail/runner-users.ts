import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * User ids for runner processes if we are root. Each id is used for one process, until the range is exhausted, so that a process never owns files or
 * processes of an earlier one. The ids need no entry in /etc/passwd.
 */
export class RunnerUsers {
  private readonly first: number;
  private readonly count: number;
  private readonly start: number;
  private serial: number;

  constructor(mapped = lastMappedUser()) {
    // A container may map only 65536 users
    [this.first, this.count] = mapped >= 400_000 ? [200_000, 200_000] : [20_000, 40_000];
    // Two runtimes on one machine should not start at the same id
    this.start = this.serial = randomInt(this.count);
  }

  /** The user of npm, which installs packages: below the range, so that no component is ever it. */
  get ofInstallations(): number {
    return this.first - 1;
  }

  next(): number {
    return this.first + (this.serial++ % this.count);
  }

  /** Whether this object has returned the id. */
  gave(uid: number): boolean {
    const nth = (uid - this.first - this.start + this.count) % this.count;
    return uid >= this.first && uid < this.first + this.count && nth >= 0 && nth < this.serial - this.start;
  }
}

function lastMappedUser(): number {
  try {
    const ranges = readFileSync('/proc/self/uid_map', 'latin1').trim().split('\n');
    return Math.max(...ranges.map((range) => range.trim().split(/\s+/).map(Number)).map(([first, , count]) => first! + count! - 1));
  } catch {
    return 0;
  }
}

import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * User ids for runner processes, where we are root: each for one process and then never again (as long as the range is long), so that no file or
 * process of an earlier one can belong to it. They need no entry in /etc/passwd.
 */
export class RunnerUsers {
  private readonly first: number;
  private readonly count: number;
  private readonly start: number;
  private serial: number;

  constructor(mapped = lastMappedUser()) {
    // In a container that maps 65536 users there are no others
    [this.first, this.count] = mapped >= 400_000 ? [200_000, 200_000] : [20_000, 40_000];
    // Two runtimes on one machine should not count alike
    this.start = this.serial = randomInt(this.count);
  }

  /** The user of npm, which installs packages: below the range, so that no component is ever it. */
  get ofInstallations(): number {
    return this.first - 1;
  }

  next(): number {
    return this.first + (this.serial++ % this.count);
  }

  /** Whether it was given out here. */
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

import type { Log } from './log.js';

const MINUTE_MS = 60_000;
/** More lines of one kind would hide the others, and fill the disk. */
const PER_MINUTE = 100;

/** Warnings of one kind that anyone can cause, with any number of different ids. At the end of a minute with very many, a line has the number of those that were left out. */
export class LimitedWarnings {
  private warnings = 0;

  constructor(
    private readonly log: Log,
    private readonly message: string,
  ) {}

  warn(fields: object): void {
    if (this.warnings === 0) setTimeout(() => this.endMinute(), MINUTE_MS).unref();
    if (++this.warnings <= PER_MINUTE) this.log.warn(fields, this.message);
  }

  private endMinute(): void {
    const leftOut = this.warnings - PER_MINUTE;
    this.warnings = 0;
    if (leftOut > 0) this.log.warn({ left_out: leftOut }, this.message);
  }
}

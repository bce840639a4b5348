import type { Log } from './log.js';

const MINUTE_MS = 60_000;
/** More lines of one kind would hide the others, and fill the disk. */
const PER_MINUTE = 100;

/**
 * Warnings of one kind that anyone, or an outage, can cause with any number of different ids. At the end of a minute with very many, a line has the number of
 * those that were left out.
 */
export class LimitedWarnings {
  private warnings = 0;

  /** common: fields of each line. */
  constructor(
    private readonly log: Log,
    private readonly message: string,
    private readonly common: object = {},
    private readonly level: 'warn' | 'error' = 'warn',
  ) {}

  warn(fields: object): void {
    if (this.warnings === 0) setTimeout(() => this.endMinute(), MINUTE_MS).unref();
    if (++this.warnings <= PER_MINUTE) this.write(fields);
  }

  private endMinute(): void {
    const leftOut = this.warnings - PER_MINUTE;
    this.warnings = 0;
    if (leftOut > 0) this.write({ left_out: leftOut });
  }

  private write(fields: object): void {
    this.log[this.level]({ ...this.common, ...fields }, this.message);
  }
}
